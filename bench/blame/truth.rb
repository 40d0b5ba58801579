# frozen_string_literal: true

module Blame
  # Who is to blame for waits, by what threads have noted.
  class Truth
    # A piece of a thread's time, in ns.
    Piece = Struct.new(:thread, :from, :to)

    # @param notes [Hash{Symbol => Hash}] of each thread `:runs` and `:wants`: when it ran, and when it wanted to, as
    #   pairs of times in the order of time
    def initialize(notes)
      @wants = notes.transform_values { |it| it[:wants] }
      @runs = notes.flat_map { |thread, it| it[:runs].map { |from, to| Piece.new(thread, from, to) } }.sort_by(&:from)
    end

    # @return [Hash{Symbol => Integer}] of each thread for how long others have waited while it ran, in ns
    def blame
      blame = @wants.transform_values { 0 }
      @wants.each do |thread, wants|
        wants.each { |from, to| charge(blame, thread, from, to) }
      end
      blame
    end

    private

    # Whoever runs in this time is to blame, unless it is the thread itself. The pieces of one thread don't overlap, nor
    # do those of different ones, as one at a time has the GVL: so few begin before this time and reach into it.
    def charge(blame, thread, from, to)
      index = [(@runs.bsearch_index { |piece| piece.from >= from } || @runs.size) - @wants.size, 0].max
      while (piece = @runs[index]) && piece.from < to
        shared = [piece.to, to].min - [piece.from, from].max
        blame[piece.thread] += shared if shared.positive? && piece.thread != thread
        index += 1
      end
    end
  end
end
