package fanline;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pekko.stream.Attributes;
import org.apache.pekko.stream.Inlet;
import org.apache.pekko.stream.SinkShape;
import org.apache.pekko.stream.stage.AbstractInHandler;
import org.apache.pekko.stream.stage.GraphStage;
import org.apache.pekko.stream.stage.GraphStageLogic;

/** A consumer that checks every element: 0, 1, 2, and so on, and their number. */
final class Checked extends GraphStage<SinkShape<Long>> {
    private final Inlet<Long> in = Inlet.create("Checked.in");
    private final SinkShape<Long> shape = SinkShape.of(in);
    private final int elements;
    private final CountDownLatch ended;
    private final AtomicReference<Throwable> failure;

    Checked(int elements, CountDownLatch ended, AtomicReference<Throwable> failure) {
        this.elements = elements;
        this.ended = ended;
        this.failure = failure;
    }

    @Override
    public SinkShape<Long> shape() {
        return shape;
    }

    @Override
    public GraphStageLogic createLogic(Attributes attributes) {
        return new Logic();
    }

    private final class Logic extends GraphStageLogic {
        private long next;

        Logic() {
            super(shape);
            setHandler(
                    in,
                    new AbstractInHandler() {
                        @Override
                        public void onPush() {
                            expect(grab(in));
                            pull(in);
                        }

                        @Override
                        public void onUpstreamFinish() {
                            expect(elements);
                            completeStage();
                        }

                        @Override
                        public void onUpstreamFailure(Throwable cause) {
                            failure.compareAndSet(null, cause);
                            failStage(cause);
                        }
                    });
        }

        /** The end arrives in place of a further element. */
        private void expect(long value) {
            if (value != next) {
                throw new IllegalStateException("expected " + next + ", got " + value);
            }
            next++;
        }

        @Override
        public void preStart() {
            pull(in);
        }

        /** Also called after an exception, which Pekko treats as a failure of the stage. */
        @Override
        public void postStop() {
            if (next != elements + 1L) {
                failure.compareAndSet(
                        null, new IllegalStateException("ended after " + next + " of " + elements));
            }
            ended.countDown();
        }
    }
}
