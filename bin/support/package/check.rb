# frozen_string_literal: true

# Whether native files can be shipped: what they need of a system, what they show to others, and how large they are.
#
#   check.rb CPU GLIBC FILE...
#
# Reads them with `readelf`, which knows every CPU.
require "open3"

# Bytes of a library at most.
LARGEST_LIBRARY = 6_500_000
SHOWN = %w[Init_rperf ruby_abi_version].freeze
# What a library finds in the program that loads it.
OF_RUBY = /\A(rb|ruby)_/
MACHINES = { "x86_64" => "X86-64", "aarch64" => "AArch64" }.freeze

def readelf(*options, file)
  output, status = Open3.capture2({ "LC_ALL" => "C" }, "readelf", "-W", *options, file)
  status.success? ? output : abort("check.rb: readelf can't read #{file}")
end

# A row of the dynamic table of symbols.
DynamicSymbol = Struct.new(:binding, :is_defined, :name, :version)

def symbols(file)
  readelf("--dyn-syms", file).each_line.filter_map do |line|
    _, _, size, _, binding, _, index, name, = line.split
    next unless size&.match?(/\A(\d+|0x\h+)\z/) && name

    DynamicSymbol.new(binding, index != "UND", *name.split(/@+/, 2))
  end
end

def glibc_of(symbol) = symbol.version&.delete_prefix("GLIBC_")

# What keeps the file from a system, or is of no use there.
def faults(file, cpu, glibc)
  symbols = symbols(file)
  needed, shown = symbols.partition { |symbol| !symbol.is_defined }
  is_library = file.end_with?(".so")
  newer = needed.select { |symbol| glibc_of(symbol)&.match?(/\A\d/) && Gem::Version.new(glibc_of(symbol)) > Gem::Version.new(glibc) }
  # Bound as the file is loaded, by whatever the system has.
  bare = needed.select { |symbol| symbol.binding == "GLOBAL" && !symbol.version }.map(&:name)
  bare = bare.grep_v(OF_RUBY) if is_library
  sections = readelf("--section-headers", file)
  header = readelf("--file-header", file)
  [
    ("is for another CPU than #{cpu}" unless header.include?(MACHINES.fetch(cpu))),
    *newer.map { |symbol| "needs #{symbol.name} of glibc #{glibc_of(symbol)}" },
    *bare.map { |name| "needs #{name}, of no version of glibc" },
    *((shown.map(&:name) - SHOWN).map { |name| "shows #{name}" } if is_library),
    ("has debug information" if sections.include?(".debug_info")),
    ("has #{File.size(file)} bytes; #{LARGEST_LIBRARY} is the limit" if is_library && File.size(file) > LARGEST_LIBRARY)
  ].compact
end

cpu, glibc, *files = ARGV
found = files.flat_map { |file| faults(file, cpu, glibc).map { |fault| "#{file} #{fault}" } }
warn found
exit found.empty?
