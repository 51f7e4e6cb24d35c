package fanline;

/** What is measured: each repetition begins with everything fresh. */
interface Load {
    Repetition prepare(int messages, int subscribers);

    /** One repetition. */
    interface Repetition {
        /** What is timed. */
        void run();

        /** Throws unless everybody has received everything. */
        void check();
    }

    /** Compares what was received with what should have been. */
    static void expect(long received, long expected) {
        if (received != expected) {
            throw new IllegalStateException("received " + received + " of " + expected);
        }
    }
}
