package ingest.platform;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.s3a.Listing;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3AUtils;
import org.apache.hadoop.fs.s3a.S3ListRequest;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;

/**
 * Delta's log on S3 for any number of writers: a commit is one conditional PUT.
 *
 * Delta's own store for S3 looks whether the version exists and then puts it, under a lock that
 * ends at the JVM: a second driver that commits in between is overwritten, and its data is lost
 * without a word. Here the object store decides (If-None-Match: *), so each version has one winner.
 *
 * Every write carries an id of its own, kept with the object. A 412 can be the answer to the SDK's
 * second try of a PUT whose first try landed and whose response was lost; taken for a conflict,
 * Delta would commit the same data again under the next version. So after any failure the id on
 * the object decides, not the kind of the failure.
 *
 * Register with spark.delta.logStore.s3a.impl. Compiled by Janino: no lambdas, no diamonds.
 */
public class ConditionalPutLogStore extends HadoopFileSystemLogStore {

  private static final String WRITE_ID = "ingest-write-id";
  private static final String LOG = "_delta_log";
  private static final Integer PAGE = Integer.valueOf(1000); // S3 gives no more at once

  public ConditionalPutLogStore(Configuration initHadoopConf) {
    super(initHadoopConf);
  }

  /** S3 shows an object whole or not at all. */
  public Boolean isPartialWriteVisible(Path path, Configuration hadoopConf) {
    return Boolean.FALSE;
  }

  /**
   * Files of a folder whose names do not come before the path's, in order of their names.
   *
   * Delta asks for the few newest of a log at each look. A listing of all of it takes a request for
   * each 1,000 files, so that every batch would be a little slower than the one before; S3 can
   * begin at a name. It is for logs only: VACUUM lists data through this method.
   *
   * @throws FileNotFoundException there is no such folder.
   */
  public Iterator<FileStatus> listFrom(Path path, Configuration hadoopConf) throws IOException {
    FileSystem fs = path.getFileSystem(hadoopConf);
    if (!(fs instanceof S3AFileSystem) || !LOG.equals(path.getParent().getName())) {
      return super.listFrom(path, hadoopConf);
    }
    Path folder = fs.makeQualified(path.getParent());
    RemoteIterator files = list((S3AFileSystem) fs, folder, path.getName());
    List<FileStatus> found = new ArrayList<FileStatus>();
    while (files.hasNext()) {
      FileStatus file = (FileStatus) files.next();
      if (file.getPath().getName().compareTo(path.getName()) >= 0) found.add(file);
    }
    if (found.isEmpty() && !fs.exists(folder)) {
      throw new FileNotFoundException("no such folder: " + folder);
    }
    return found.iterator();
  }

  private static RemoteIterator list(S3AFileSystem fs, Path folder, String name)
      throws IOException {
    String prefix = fs.pathToKey(folder) + "/";
    ListObjectsV2Request.Builder request = ListObjectsV2Request.builder();
    request.bucket(fs.getBucket());
    request.prefix(prefix);
    request.delimiter("/");
    request.maxKeys(PAGE);
    // What S3 begins after; a name less its last letter sorts right before the name and its like.
    request.startAfter(prefix + name.substring(0, name.length() - 1));
    return fs.getListing().createFileStatusListingIterator(folder,
        S3ListRequest.v2((ListObjectsV2Request) request.build()), S3AUtils.ACCEPT_ALL,
        new Listing.AcceptAllButSelfAndS3nDirs(folder), fs.getActiveAuditSpan());
  }

  /**
   * Write a file of the log.
   *
   * @throws FileAlreadyExistsException another writer holds this version: Delta resolves the
   *     conflict and tries the next one.
   * @throws TurnedBackException the commit is automatic, and yields; see YieldGate.
   * @throws IOException anything else. The file may exist nevertheless, now or, when a request is
   *     still on its way, later: the caller must repeat the batch under the same txnVersion, which
   *     Delta skips if it did land, and never assume that it did not.
   */
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration hadoopConf)
      throws IOException {
    if (!overwrite.booleanValue()) YieldGate.pass(path, hadoopConf);
    try {
      put(path, actions, overwrite.booleanValue(), path.getFileSystem(hadoopConf));
    } catch (FileAlreadyExistsException conflict) {
      WinnersChecksum.await(path, hadoopConf);
      throw conflict;
    }
  }

  private static void put(Path path, Iterator<String> actions, boolean overwrite, FileSystem fs)
      throws IOException {
    String writeId = UUID.randomUUID().toString();
    FSDataOutputStream out = open(fs, path, overwrite, writeId);
    send(out, actions);
    try {
      out.close();
    } catch (IOException failure) {
      // _last_checkpoint and the like: whoever comes last wins, and losing a write loses no data.
      if (overwrite) throw failure;
      settle(fs, path, writeId, failure);
    }
  }

  private static FSDataOutputStream open(FileSystem fs, Path path, boolean overwrite, String writeId)
      throws IOException {
    FSDataOutputStreamBuilder builder = fs.createFile(path);
    builder.overwrite(overwrite);
    builder.recursive();
    if (!overwrite) {
      // "must": a file system that does not know the option refuses, instead of writing unsafely.
      builder.must("fs.option.create.conditional.overwrite", true);
      builder.must("fs.s3a.create.header." + WRITE_ID, writeId);
    }
    try {
      return (FSDataOutputStream) builder.build();
    } catch (org.apache.hadoop.fs.FileAlreadyExistsException e) {
      // Seen before anything was sent, so it cannot be ours. Delta knows only java.nio's class.
      throw conflict(path, e);
    }
  }

  private static void send(FSDataOutputStream out, Iterator<String> actions) throws IOException {
    boolean complete = false;
    try {
      while (actions.hasNext()) {
        out.write(((String) actions.next()).getBytes(StandardCharsets.UTF_8));
        out.write('\n');
      }
      complete = true;
    } finally {
      // Closing would publish what was written so far: a commit that lacks files.
      if (!complete) out.abort();
    }
  }

  /** Find out what a failed write did: return if it landed, throw what it means if not. */
  private static void settle(FileSystem fs, Path path, String writeId, IOException failure)
      throws IOException {
    byte[] holder;
    try {
      holder = fs.getXAttr(path, "header." + WRITE_ID);
    } catch (FileNotFoundException absent) {
      throw failure;
    } catch (IOException unreadable) {
      failure.addSuppressed(unreadable);
      // Spark takes this type for its own stop() and must not see it wrapped.
      if (failure instanceof InterruptedIOException) throw failure;
      throw new IOException("unknown whether the commit " + path + " was written: the write failed"
          + " and so did looking it up. Repeat the batch with the same txnAppId and txnVersion;"
          + " Delta skips it if it was.", failure);
    }
    if (holder != null && writeId.equals(new String(holder, StandardCharsets.UTF_8))) return;
    // Without an id it was written by a store of another kind, hence not by this call.
    throw conflict(path, failure);
  }

  private static FileAlreadyExistsException conflict(Path path, Exception cause) {
    FileAlreadyExistsException e = new FileAlreadyExistsException(path.toString());
    e.initCause(cause);
    return e;
  }
}
