package fanline;

import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pekko.NotUsed;
import org.apache.pekko.stream.Materializer;
import org.apache.pekko.stream.javadsl.BroadcastHub;
import org.apache.pekko.stream.javadsl.Source;

/** One producer and several consumers, each of which receives every element. */
final class Lockstep {
    private final Materializer materializer;

    /** Boxed in advance, so that boxing is not part of the measurement. */
    private Long[] values = {};

    Lockstep(Materializer materializer) {
        this.materializer = materializer;
    }

    /** Nanoseconds from before the hub is created until the last consumer has ended. */
    long run(int buffer, int consumers, int elements) throws Exception {
        if (values.length < elements) {
            values = new Long[elements];
            Arrays.setAll(values, Long::valueOf);
        }
        CountDownLatch ended = new CountDownLatch(consumers);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        long start = System.nanoTime();
        Source<Long, NotUsed> hub =
                Source.fromGraph(new Values(values, elements))
                        .runWith(BroadcastHub.of(Long.class, consumers, buffer), materializer);
        for (int i = 0; i < consumers; i++) {
            hub.runWith(new Checked(elements, ended, failure), materializer);
        }
        ended.await();
        long nanos = System.nanoTime() - start;
        if (failure.get() != null) {
            throw new IllegalStateException("a consumer failed", failure.get());
        }
        return nanos;
    }
}
