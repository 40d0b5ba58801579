# frozen_string_literal: true

module Bench
  # A profile like that of a large application, made from chance: a random walk
  # through methods that call a few others each, in which one stack shares most of
  # its frames with the one before.
  class MadeProfile
    METHODS = 3000
    METHODS_PER_FILE = 12
    CALLEES = 5

    def initialize(stacks:, depth:, seed: 42)
      @stacks = stacks
      @depth = depth
      @random = Random.new(seed)
      @frames = Array.new(METHODS) do |number|
        file = number / METHODS_PER_FILE
        part = file % 17
        ["/srv/app/lib/part_#{part}/class_#{file}.rb", "App::Part#{part}::Class#{file}#method_#{number}"].freeze
      end
      @callees = Array.new(METHODS) { Array.new(CALLEES) { @random.rand(METHODS) } }
    end

    # @return [Hash] as NativeProfile.from_h takes it
    def to_h
      { mode: :wall, frequency: 1000, duration_ns: @stacks * 1_000_000, sampling_count: @stacks, samples: }
    end

    private

    def samples
      seen = {}
      path = [0]
      while seen.size < @stacks
        path = changed(path)
        # Frames leaf first; weight; thread.
        seen[path.hash] ||= [path.reverse.map { |method| @frames[method] }, @random.rand(500_000..1_500_000),
                             @random.rand(1..8)]
      end
      seen.values
    end

    # Returns from a few methods (from many now and then) and calls others.
    def changed(path)
      returns = [((@random.rand**4) * @depth).ceil + 1, path.size - 1].min
      path = path[0, path.size - returns]
      path << @callees[path.last].sample(random: @random) while path.size < @depth
      path
    end
  end
end
