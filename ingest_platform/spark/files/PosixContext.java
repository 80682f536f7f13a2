package ingest.platform;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * file: for Hadoop's FileContext, with checksums as usual, but for Delta's log; see PosixFiles. Set
 * as fs.AbstractFileSystem.file.impl.
 *
 * What Delta writes into its log through a FileContext are the versions' own checksums, one for
 * each commit. A file beside each of them would be a third of the names in the folder, which every
 * batch reads. Commits have none either (LinkLogStore).
 */
public class PosixContext extends ChecksumFs {

  public PosixContext(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(new RawPosixContext(conf));
  }

  /** Create a file, and the one with its checksum beside it unless it is of a log. */
  public FSDataOutputStream createInternal(Path file, EnumSet flag, FsPermission mode, int buffer,
      short replication, long blockSize, Progressable progress, Options.ChecksumOpt checksum,
      boolean createParent) throws IOException {
    if (!ofLog(file)) {
      return super.createInternal(file, flag, mode, buffer, replication, blockSize, progress,
          checksum, createParent);
    }
    return getRawFs().createInternal(file, flag, mode, buffer, replication, blockSize, progress,
        checksum, createParent);
  }

  /** Rename a file, or fail if the target is there. */
  public void renameInternal(Path from, Path to) throws IOException {
    renameInternal(from, to, false);
  }

  /** Rename a file with the one beside it; none is beside a log's. */
  public void renameInternal(Path from, Path to, boolean overwrite) throws IOException {
    if (!(ofLog(from) && ofLog(to))) {
      super.renameInternal(from, to, overwrite);
      return;
    }
    // Hadoop verifies a file against the checksum beside it. One that outlived its version (somebody
    // removed the version, or an older release wrote it) would make ours unreadable.
    getRawFs().delete(getChecksumFile(to), false);
    Options.Rename how = overwrite ? Options.Rename.OVERWRITE : Options.Rename.NONE;
    getRawFs().rename(from, to, new Options.Rename[] {how});
  }

  private static boolean ofLog(Path file) {
    Path folder = file.getParent();
    return folder != null && folder.getName().equals("_delta_log");
  }
}
