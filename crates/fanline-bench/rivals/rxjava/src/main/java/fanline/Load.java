package fanline;

/** A measured load. Each repetition starts with fresh objects. */
interface Load {
    Repetition prepare(int messages, int subscribers);

    /** One repetition. */
    interface Repetition {
        /** The timed part. */
        void run();

        /** Throws unless every subscriber has received every value. */
        void check();
    }

    /** Compares the received with the expected number of values. */
    static void expect(long received, long expected) {
        if (received != expected) {
            throw new IllegalStateException("received " + received + " of " + expected);
        }
    }
}
