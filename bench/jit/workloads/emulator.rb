# frozen_string_literal: true

# An emulator of a small computer: registers in instance variables, memory in an array, and a loop over a case with
# an instruction in each branch. Its program looks for primes, and counts.

class Computer
  CODES = %i[load add subtract multiply copy read write jump zero below call return stop].each_with_index.to_h.freeze
  WORD = 0xffff

  attr_reader :memory

  # @param program [Array<Array>] name, first and second operand of each instruction
  def initialize(program, size)
    @program = program.flat_map { |name, first, second| [CODES.fetch(name), first || 0, second || 0] }
    @memory = Array.new(size, 0)
    @registers = Array.new(8, 0)
    @stack = []
    @position = 0
    @steps = 0
  end

  # @return [Integer] instructions until it stopped
  def run
    nil while step
    @steps
  end

  private

  # rubocop:disable Metrics/CyclomaticComplexity -- the case over instructions is what is measured
  def step
    code = @program[@position]
    first = @program[@position + 1]
    second = @program[@position + 2]
    @position += 3
    @steps += 1
    case code
    when 0 then set(first, second)
    when 1 then set(first, @registers[first] + @registers[second])
    when 2 then set(first, @registers[first] - @registers[second])
    when 3 then set(first, @registers[first] * @registers[second])
    when 4 then set(first, @registers[second])
    when 5 then set(first, @memory[@registers[second]])
    when 6 then store(@registers[first], @registers[second])
    when 7 then jump(first)
    when 8 then jump(second) if @zero
    when 9 then jump(second) if @negative
    when 10 then call(first)
    when 11 then @position = @stack.pop
    else return false
    end
    true
  end
  # rubocop:enable Metrics/CyclomaticComplexity

  def set(register, value)
    @zero = value.zero?
    @negative = value.negative?
    @registers[register] = value & WORD
  end

  def store(address, value)
    @memory[address] = value
  end

  def jump(line)
    @position = line * 3
  end

  def call(line)
    @stack.push(@position)
    jump(line)
  end
end

LIMIT = 1500
# Register 0: the number, 1: the limit, 2: a multiple, 3: one, 4: scratch, 5: how many, 6: nothing.
PRIMES = [
  [:load, 0, 2], [:load, 1, LIMIT], [:load, 3, 1], [:load, 6, 0],
  # 4: Is the number marked?
  [:read, 4, 0], [:zero, nil, 7], [:jump, 8],
  # 7: No: mark its multiples.
  [:call, 13],
  # 8: The next number.
  [:add, 0, 3], [:copy, 4, 0], [:subtract, 4, 1], [:below, nil, 4], [:stop],
  # 13: Counts, and marks from the square on if that is below the limit.
  [:add, 5, 3], [:copy, 2, 0], [:add, 2, 0],
  # 16: A multiple.
  [:copy, 4, 2], [:subtract, 4, 1], [:below, nil, 20], [:return],
  # 20: Marks it.
  [:write, 2, 3], [:add, 2, 0], [:jump, 16]
].freeze

WORKLOAD = ->(scale) { (50 * scale).ceil.times { Computer.new(PRIMES, LIMIT).run } }
