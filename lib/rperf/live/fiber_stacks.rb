# frozen_string_literal: true

module Rperf
  # What Ruby says of fibers, for the port: those that are in no thread's stack, which it shows anyway. Made on the
  # helper, which the extension has look at one after the other: other threads run in between. No code of the program
  # runs, whatever methods it has put in place of Ruby's.
  class FiberStacks
    # Fibers that are looked at, frames of a stack, and frames of all stacks that differ.
    MOST = 10_000
    DEPTH = 1000
    MOST_FRAMES = 100_000
    # What Fiber#to_s says; a class may have been given any name.
    TEXT = /\A#<.*?:0x\h+(?:\(&.*\))? ?(.*) \((\w+(?: by resuming)?)\)>\z/mn
    NO_RACTORS = "Ruby lists no fibers of a program that has made a Ractor"
    OTHER_METHODS = "No fibers are shown: methods of the program are in place of those that Ruby has to list them"
    private_constant :MOST, :DEPTH, :MOST_FRAMES, :TEXT, :NO_RACTORS, :OTHER_METHODS

    attr_reader :size

    # Finds them, which is a walk of the whole heap.
    def initialize
      @fibers = []
      @left_out = 0
      @are_plain = Hash.new { |known, type| known[type] = plain?(type) }.compare_by_identity
      @note = FiberMethods::ALL.include?(nil) ? OTHER_METHODS : list
      @size = @fibers.size
      @names = Hash.new { |names, name| names[name] = names.size }
      @stacks = Hash.new(0)
      @frames = 0
    end

    # Looks at one; each is to be looked at once.
    # @param place [Integer] its place, from 0 to #size
    def look_at(place)
      fiber = @fibers[place]
      @fibers[place] = nil
      return @left_out += 1 unless @are_plain[FiberMethods::CLASS.bind_call(fiber)]

      block, state = FiberMethods::TO_S.bind_call(fiber).b.match(TEXT)&.captures
      # That of a thread is `resumed`: the thread's stack is its stack.
      note(state, block, fiber) unless [nil, "resumed", "terminated"].include?(state)
    rescue FiberError
      nil # It was never set up.
    rescue StandardError
      @left_out += 1
    end

    # @return [Array] why there are none, how many were left out, the label and path of each frame, and for each stack:
    #   how many have it, their state, where their block is, and the places of its frames with their lines
    def to_a
      stacks = @stacks.map { |(state, block, frames), count| [count, state, block, frames] }
      [@note, @left_out + @fibers.compact.size, @names.keys, stacks]
    end

    private

    # @return [String, nil] why Ruby lists none
    def list
      # It's alive, so it is found if Ruby lists fibers at all.
      own = FiberMethods::CURRENT.bind_call(Fiber)
      note = NO_RACTORS
      FiberMethods::EACH_OBJECT.bind_call(ObjectSpace, Fiber) do |fiber|
        Builtin::SAME.bind_call(fiber, own) ? note = nil : find(fiber)
      end
      note
    end

    def find(fiber)
      return unless FiberMethods::ALIVE.bind_call(fiber)

      @fibers.size < MOST ? @fibers << fiber : @left_out += 1
    rescue FiberError
      nil
    end

    # Whether Fiber#to_s runs no code of the program: it asks the class for its name by `to_s`, and the symbol that a
    # block may be by `inspect`.
    def plain?(type)
      singleton_class = FiberMethods::SINGLETON_CLASS.bind_call(type)
      calls_original?(singleton_class, :to_s, Module) && calls_original?(Symbol, :inspect, Symbol)
    rescue NameError
      false # It has undefined it.
    end

    # A block that is a symbol has no place in a file either, but takes arguments.
    def calls_original?(type, name, owner)
      method = Builtin::INSTANCE_METHOD.bind_call(type, name)
      FiberMethods.original?(method, owner) && method.arity.zero?
    end

    def note(state, block, fiber)
      locations = FiberMethods::LOCATIONS.bind_call(fiber, 0, DEPTH) || []
      # Threads' frames have these paths, too.
      frames = locations.flat_map { |it| [@names[[it.label || "", it.absolute_path || it.path || ""]], it.lineno || 0] }
      stack = [state, block, frames]
      return @left_out += 1 unless @stacks.key?(stack) || @frames < MOST_FRAMES

      @frames += locations.size if (@stacks[stack] += 1) == 1
    end
  end
  private_constant :FiberStacks
end
