package ingest.platform;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A commit that came second waits a moment for the version checksum of the first.
 *
 * Delta derives a version's checksum from the one before. A writer publishes it right after its
 * commit, but whoever lost against that commit looks for it earlier: not finding it, Delta replays
 * the log with a Spark job, in the middle of a micro-batch. A batch that met a compaction's commit
 * took 0.6 to 1.6 s longer so, and longer with a longer log.
 *
 * For sessions with WAIT_MILLIS among their settings, which reach the LogStore like those of
 * YieldGate.
 */
final class WinnersChecksum {

  /** Longest wait; a winner that writes no checksums, such as delta-rs, is waited for in vain. */
  static final String WAIT_MILLIS = "spark.ingest.commit.checksumWaitMillis";

  private static final int LOOK_MILLIS = 25;

  private WinnersChecksum() {}

  /**
   * Wait for the checksum of a version that another writer holds.
   *
   * @param commit the version's file in the log.
   */
  static void await(Path commit, Configuration conf) {
    long wait = conf.getLong(WAIT_MILLIS, 0L);
    if (wait <= 0L || !YieldGate.isCommit(commit.getName())) return;
    String version = commit.getName().substring(0, YieldGate.VERSION_DIGITS);
    Path checksum = new Path(commit.getParent(), version + ".crc");
    long deadline = System.nanoTime() + wait * 1000000L;
    try {
      FileSystem fs = checksum.getFileSystem(conf);
      while (!fs.exists(checksum) && System.nanoTime() < deadline) Thread.sleep(LOOK_MILLIS);
    } catch (IOException unreadable) {
      return; // Delta is about to look for itself, and does without
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt(); // whoever waits next is told
    }
  }
}
