package fanline;

import io.reactivex.rxjava3.disposables.Disposable;
import io.reactivex.rxjava3.functions.Consumer;
import io.reactivex.rxjava3.subjects.Subject;
import java.util.function.Supplier;

/**
 * Visits of a subject: an observer subscribes, receives one value, and unsubscribes, while other
 * observers stay.
 */
final class Visit implements Load {
    private final Supplier<Subject<Integer>> subjects;

    /** Number of values that a visitor receives. */
    private final int received;

    Visit(Supplier<Subject<Integer>> subjects, int received) {
        this.subjects = subjects;
        this.received = received;
    }

    @Override
    public Repetition prepare(int visits, int present) {
        Subject<Integer> subject = subjects.get();
        // A replay subject has a value for the first visitor.
        subject.onNext(0);
        long[] count = new long[1];
        Consumer<Integer> observer = value -> count[0]++;
        for (int i = 0; i < present; i++) {
            subject.subscribe(value -> count[0]++);
        }
        count[0] = 0;
        Integer value = 1_000;
        return new Repetition() {
            @Override
            public void run() {
                for (int i = 0; i < visits; i++) {
                    Disposable visitor = subject.subscribe(observer);
                    subject.onNext(value);
                    visitor.dispose();
                }
            }

            @Override
            public void check() {
                Load.expect(count[0], (long) visits * (present + received));
            }
        };
    }
}
