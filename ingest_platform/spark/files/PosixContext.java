package ingest.platform;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;

/**
 * file: for Hadoop's FileContext, with checksums as usual; see PosixFiles. Set as
 * fs.AbstractFileSystem.file.impl.
 */
public class PosixContext extends ChecksumFs {

  public PosixContext(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(new RawPosixContext(conf));
  }
}
