# frozen_string_literal: true

module Rperf
  # What Ruby says of fibers, for the port: those that are in no thread's stack, which it shows anyway. Made on the
  # helper, which the extension has look at one after the other: other threads run in between.
  class FiberStacks
    # Fibers that are looked at, frames of a stack, and frames of all stacks that differ.
    MOST = 10_000
    DEPTH = 1000
    MOST_FRAMES = 100_000
    # The methods as they are now: a program may put its own in their place.
    EACH_OBJECT = ObjectSpace.method(:each_object)
    CURRENT = Fiber.method(:current)
    ALIVE, TO_S, LOCATIONS = %i[alive? to_s backtrace_locations].map { |name| Fiber.instance_method(name) }
    CLASS, SINGLETON_CLASS, EQUAL = %i[class singleton_class equal?].map { |name| Object.instance_method(name) }
    METHOD = Module.instance_method(:instance_method)
    private_constant :MOST, :DEPTH, :MOST_FRAMES, :EACH_OBJECT, :CURRENT, :ALIVE, :TO_S, :LOCATIONS, :CLASS,
                     :SINGLETON_CLASS, :EQUAL, :METHOD

    attr_reader :size

    # Finds them, which is a walk of the whole heap.
    def initialize
      @fibers = []
      @is_listed = false
      # It's alive, so it is found if Ruby lists fibers at all.
      @own = CURRENT.call
      @left_out = 0
      @are_plain = Hash.new { |known, type| known[type] = plain?(type) }.compare_by_identity
      EACH_OBJECT.call(Fiber) { |fiber| find(fiber) }
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
      return @left_out += 1 unless @are_plain[CLASS.bind_call(fiber)]

      block, state = TO_S.bind_call(fiber).b.match(/\A#<\S+ ?(.*) \((\w+(?: by resuming)?)\)>\z/mn)&.captures
      # That of a thread is `resumed`: the thread's stack is its stack.
      note(state, block, fiber) unless [nil, "resumed", "terminated"].include?(state)
    rescue FiberError
      nil # It was never set up.
    rescue StandardError
      @left_out += 1
    end

    # @return [Array] whether Ruby lists fibers, how many were left out, the label and path of each frame, and for each
    #   stack: how many have it, their state, where their block is, and the places of its frames with their lines
    def to_a
      stacks = @stacks.map { |(state, block, frames), count| [count, state, block, frames] }
      [@is_listed, @left_out + @fibers.compact.size, @names.keys, stacks]
    end

    private

    def find(fiber)
      if EQUAL.bind_call(fiber, @own)
        @is_listed = true
      elsif ALIVE.bind_call(fiber)
        @fibers.size < MOST ? @fibers << fiber : @left_out += 1
      end
    rescue FiberError
      nil
    end

    # Whether Fiber#to_s runs no code of the program: it asks the class for its name by `to_s`, and the symbol that a
    # block may be by `inspect`.
    def plain?(type)
      own?(SINGLETON_CLASS.bind_call(type), :to_s, Module) && own?(Symbol, :inspect, Symbol)
    rescue NameError
      false
    end

    def own?(type, name, owner)
      method = METHOD.bind_call(type, name)
      method.owner == owner && method.source_location.nil?
    end

    def note(state, block, fiber)
      locations = LOCATIONS.bind_call(fiber, 0, DEPTH) || []
      frames = locations.flat_map { |it| [@names[[it.label || "", it.path || ""]], it.lineno || 0] }
      stack = [state, block, frames]
      return @left_out += 1 unless @stacks.key?(stack) || @frames < MOST_FRAMES

      @frames += locations.size if (@stacks[stack] += 1) == 1
    end
  end
  private_constant :FiberStacks
end
