package ingest.platform;

import java.io.IOException;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FsConstants;

/** PosixFiles for a FileContext, as Hadoop's RawLocalFs is for its own. */
class RawPosixContext extends DelegateToFileSystem {

  RawPosixContext(Configuration conf) throws IOException, URISyntaxException {
    super(FsConstants.LOCAL_FS_URI, new PosixFiles(), conf,
        FsConstants.LOCAL_FS_URI.getScheme(), false);
  }

  public int getUriDefaultPort() {
    return -1; // a path has none
  }

  public boolean isValidName(String name) {
    return true; // whatever the disk takes
  }
}
