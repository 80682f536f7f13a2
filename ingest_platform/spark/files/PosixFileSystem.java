package ingest.platform;

import org.apache.hadoop.fs.LocalFileSystem;

/** file: for Hadoop's FileSystem, with checksums as usual; see PosixFiles. Set as fs.file.impl. */
public class PosixFileSystem extends LocalFileSystem {

  public PosixFileSystem() {
    super(new PosixFiles());
  }
}
