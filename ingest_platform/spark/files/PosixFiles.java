package ingest.platform;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system without a process for each file.
 *
 * Where Hadoop's native library is not installed, and that is nearly everywhere, it runs chmod(1)
 * for each file and folder that it makes, and readlink(1) for each that it looks at through a
 * FileContext, as Spark does for its checkpoints: some twenty processes for a small batch. The
 * system calls that Java has by itself do the same.
 */
public class PosixFiles extends RawLocalFileSystem {

  /** Change the mode; a sticky bit, which Java cannot set, is left to Hadoop. */
  public void setPermission(Path path, FsPermission mode) throws IOException {
    if (mode.getStickyBit()) {
      super.setPermission(path, mode);
      return;
    }
    String text = mode.getUserAction().SYMBOL + mode.getGroupAction().SYMBOL
        + mode.getOtherAction().SYMBOL;
    Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
  }

  /** What a path is; a link is not followed. */
  public FileStatus getFileLinkStatus(Path path) throws IOException {
    return Files.isSymbolicLink(pathToFile(path).toPath())
        ? super.getFileLinkStatus(path) : getFileStatus(path);
  }
}
