/** What jstack is asked for: java Threads.java THREADS DEPTH. Prints a line when they all wait. */
class Threads {
    static synchronized void pause() throws InterruptedException {
        Threads.class.wait();
    }

    static void descend(int left) throws InterruptedException {
        if (left == 0) {
            pause();
        } else {
            descend(left - 1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int depth = Integer.parseInt(arguments[1]);
        for (int number = Integer.parseInt(arguments[0]); number > 0; number--) {
            Thread thread = new Thread(() -> {
                try {
                    descend(depth - 2);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println();
        System.in.read();
    }
}
