# frozen_string_literal: true

begin
  require "fiddle"
rescue LoadError
  # Not every Ruby has it.
  nil
end

# SQLite's own library, called with the GVL held as the sqlite3 gem calls it.
class SQLiteCalls
  NAMES = defined?(Fiddle) ? %w[libsqlite3.so.0 libsqlite3.dylib] : []
  # @return [Fiddle::Handle, nil]
  LIBRARY = NAMES.filter_map do |name|
    Fiddle.dlopen(name)
  rescue Fiddle::DLError
    nil
  end.first

  POINTER = Fiddle::TYPE_VOIDP if LIBRARY
  INT = Fiddle::TYPE_INT if LIBRARY
  # @return [Integer] SQLite's own numbers
  DONE = 0
  BUSY = 5

  def initialize(path)
    place = Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE)
    raise "can't open #{path}" unless call("sqlite3_open", [POINTER, POINTER], path, place) == DONE

    @database = place.ptr
  end

  # How long a statement waits for another's lock.
  def busy_timeout(milliseconds) = call("sqlite3_busy_timeout", [POINTER, INT], @database, milliseconds)

  # @return [Integer] DONE, BUSY or another of SQLite's results
  def execute(statement) = call("sqlite3_exec", [POINTER] * 5, @database, statement, nil, nil, nil)

  def close = call("sqlite3_close", [POINTER], @database)

  private

  def call(name, types, *arguments)
    Fiddle::Function.new(LIBRARY[name], types, INT, need_gvl: true).call(*arguments)
  end
end
