# frozen_string_literal: true

module Rperf
  # What Ruby says of its heap, for the port. On the helper. No code of the program runs, whatever methods it has put
  # in place of Ruby's.
  module Heap
    # The methods as they are now: a program may put its own in their place.
    STAT, STAT_HEAP, LATEST, CONFIG =
      %i[stat stat_heap latest_gc_info config].map { |name| GC.method(name) if GC.respond_to?(name) }
    # Of those that are compiled in, each module with what its counters call the bytes that it has from malloc.
    COMPILERS = { YJIT: %i[runtime_stats yjit_alloc_size], ZJIT: %i[stats zjit_alloc_bytes] }
                .select { |name, _| RubyVM.const_defined?(name) }
                .map { |name, (method, key)| [RubyVM.const_get(name), method, key] }
                .select { |compiler, method, _| compiler.respond_to?(method) && compiler.respond_to?(:enabled?) }
                .map { |compiler, method, key| [compiler.method(:enabled?), compiler.method(method), key] }
    PAGE = GC::INTERNAL_CONSTANTS.fetch(:HEAP_PAGE_SIZE, 0)
    GLOBALS = Kernel.method(:global_variables)
    FIBER = %i[fiber_vm_stack_size fiber_machine_stack_size].sum { |name| RubyVM::DEFAULT_PARAMS.fetch(name, 0) }
    private_constant(*constants(false))

    class << self
      # @return [Array] the collector, the bytes of a page, pages without an object, the bytes that a compiler has from
      #   malloc, those of a fiber's stack, and for each pool: the bytes of a slot, slots, and those with an object
      def facts
        pools = STAT_HEAP&.call
        pools = {} unless pools.is_a?(Hash)
        page = pools.empty? ? 0 : PAGE
        [collector, page, count(STAT, :heap_empty_pages), compiler, FIBER, pools.values.flat_map { |it| pool(it) }]
      end

      # @return [Boolean] whether a collection is under way
      def collecting?
        ![nil, :none].include?(LATEST&.call(:state))
      rescue ArgumentError
        false # Another collector doesn't tell.
      end

      # @return [Array<Symbol>] the names of global variables
      def globals = GLOBALS.call

      # @return [String] what the collector is called
      def collector
        name = CONFIG&.call
        name = name[:implementation] if name.is_a?(Hash)
        name.is_a?(String) ? name : "default"
      end

      private

      def compiler
        COMPILERS.sum do |enabled, counters, key|
          counted = counters.call if enabled.call
          counted.is_a?(Hash) && counted[key].is_a?(Integer) ? counted[key] : 0
        end
      end

      def pool(facts)
        slots = facts[:heap_eden_slots] || 0
        live = (facts[:total_allocated_objects] || 0) - (facts[:total_freed_objects] || 0)
        [facts[:slot_size] || 0, slots, live.clamp(0, slots)]
      end

      def count(method, key)
        method.call(key)
      rescue ArgumentError
        0 # Another collector has none.
      end
    end
  end
  private_constant :Heap
end
