package fanline;

import io.reactivex.rxjava3.core.Observer;
import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.subjects.Subject;
import java.util.Arrays;
import java.util.function.Supplier;

/** One thread calls `onNext` on a fresh subject, and each subscriber counts. */
final class FanOut implements Load {
    /** Marker instead of a number of extra values: the subject emits the last one on completion. */
    static final int ONLY_THE_LAST = -1;

    /** Boxed in advance, so that boxing is not measured; few enough to stay in the cache. */
    private static final Integer[] VALUES = new Integer[1024];

    static {
        Arrays.setAll(VALUES, Integer::valueOf);
    }

    private final Supplier<Subject<Integer>> create;
    private final boolean threeClasses;
    private final int extra;

    FanOut(Supplier<Subject<Integer>> create, boolean threeClasses, int extra) {
        this.create = create;
        this.threeClasses = threeClasses;
        this.extra = extra;
    }

    @Override
    public Repetition prepare(int messages, int subscribers) {
        Subject<Integer> subject = create.get();
        Counter[] counters = new Counter[subscribers];
        for (int i = 0; i < subscribers; i++) {
            counters[i] = counter(i);
            subject.subscribe(counters[i]);
        }
        return new Repetition() {
            @Override
            public void run() {
                emit(subject, messages);
            }

            @Override
            public void check() {
                long expected = extra == ONLY_THE_LAST ? 1 : messages + extra;
                subject.onComplete();
                for (Counter counter : counters) {
                    Load.expect(counter.count, expected);
                }
            }
        };
    }

    private static void emit(Subject<Integer> subject, int messages) {
        for (int i = 0; i < messages; i++) {
            subject.onNext(VALUES[i & 1023]);
        }
    }

    private Counter counter(int index) {
        if (!threeClasses) {
            return new First();
        }
        return switch (index % 3) {
            case 0 -> new First();
            case 1 -> new Second();
            default -> new Third();
        };
    }

    private abstract static class Counter implements Observer<Integer> {
        long count;

        @Override
        public void onSubscribe(Disposable disposable) {}

        @Override
        public void onError(Throwable error) {
            throw new IllegalStateException(error);
        }

        @Override
        public void onComplete() {}
    }

    private static final class First extends Counter {
        @Override
        public void onNext(Integer value) {
            count++;
        }
    }

    private static final class Second extends Counter {
        @Override
        public void onNext(Integer value) {
            count++;
        }
    }

    private static final class Third extends Counter {
        @Override
        public void onNext(Integer value) {
            count++;
        }
    }
}
