package ingest.platform;

import java.util.concurrent.CancellationException;

/**
 * An automatic commit was turned back because DML on its table is in flight; nothing was written.
 *
 * Not a FileAlreadyExistsException, after which Delta would try the next version, and not a
 * ConcurrentModificationException, after which OPTIMIZE would begin a new transaction: both would
 * come back at once, again and again, while the DML goes on.
 */
public class TurnedBackException extends CancellationException {

  public TurnedBackException(String message) {
    super(message);
  }
}
