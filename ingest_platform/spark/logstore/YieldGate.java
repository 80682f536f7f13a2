package ingest.platform;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The last look before an automatic commit: is DML on its table in flight?
 *
 * A session that commits automatically (asynchronous auto compaction) has YIELD_TO in its own
 * settings, and Delta hands the settings of the committing session to the LogStore. So the mark
 * travels with the session: no other session's commit can carry it, a manual OPTIMIZE does not
 * have it, and every further attempt of Delta's own conflict resolution passes here again. A
 * commit without it pays for one look-up in a map.
 */
final class YieldGate {

  /** Folder of the table's markers of DML in flight, as a URI. */
  static final String YIELD_TO = "spark.ingest.commit.yieldTo";

  static final int VERSION_DIGITS = 20;

  private YieldGate() {}

  /**
   * Let a commit pass, or turn it back.
   *
   * @param path file of the log that is about to be created.
   * @throws TurnedBackException a marker is there. Nothing was written.
   * @throws IOException the markers cannot be listed. Nothing was written either: an automatic
   *     commit can wait.
   */
  static void pass(Path path, Configuration conf) throws IOException {
    String folder = conf.get(YIELD_TO);
    if (folder == null || !isCommit(path.getName())) return;
    Path markers = new Path(folder);
    FileSystem fs = markers.getFileSystem(conf);
    FileStatus[] found;
    try {
      found = fs.listStatus(markers);
    } catch (FileNotFoundException none) {
      return;
    }
    for (int i = 0; i < found.length; i++) {
      String name = found[i].getPath().getName();
      // Drafts of markers begin with a dot: their DML has not begun.
      if (!name.startsWith(".") && name.endsWith(".json")) {
        throw new TurnedBackException(path + " yields to DML in flight: " + found[i].getPath());
      }
    }
  }

  /** Whether a file of the log is a version's. */
  static boolean isCommit(String name) {
    if (name.length() != VERSION_DIGITS + ".json".length() || !name.endsWith(".json")) return false;
    for (int i = 0; i < VERSION_DIGITS; i++) {
      if (!Character.isDigit(name.charAt(i))) return false;
    }
    return true;
  }
}
