# frozen_string_literal: true

# Whether native files can be shipped: what they need of a system, what they show to others, and how large they are.
#
#   check.rb CPU LIBC FILE...
#
# LIBC is the oldest version of glibc that they shall run with, or a file that has the names of all that musl has, in
# the assembler's language. Reads them with `readelf`, which knows every CPU.
require "open3"

# Bytes of a library at most.
LARGEST_LIBRARY = 6_500_000
SHOWN = %w[Init_rperf ruby_abi_version].freeze
# What a library finds in the program that loads it.
OF_RUBY = /\A(rb|ruby)_/
NOTHING = /\A\z/
OF_GLIBC = /\A(lib(c|m|dl|rt|pthread)|ld-linux[\w-]*)\.so\.\d+\z/
OF_MUSL = /\Alibc\.so\z/
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

# glibc, of which a system may have an old version: each of its functions has the version that it came with.
class Glibc
  def initialize(oldest)
    @oldest = Gem::Version.new(oldest)
  end

  def libraries = OF_GLIBC

  # What the file needs that a system with this glibc may not have.
  def unmet_needs(needed, given)
    newer = needed.select { |symbol| newer?(symbol) }
    # Bound as the file is loaded, by whatever the system has.
    bare = needed.select { |symbol| symbol.binding == "GLOBAL" && !symbol.version && !symbol.name.match?(given) }
    newer.map { |symbol| "needs #{symbol.name} of #{symbol.version}" } +
      bare.map { |symbol| "needs #{symbol.name}, of no version of glibc" }
  end

  private

  def newer?(symbol)
    version = symbol.version&.slice(/\AGLIBC_(\d.*)/, 1)
    version && Gem::Version.new(version) > @oldest
  end
end

# musl, whose functions have no versions.
class Musl
  def initialize(file)
    @names = File.read(file).scan(/^\.(?:globl|weak) (\w+)$/).flatten.to_set
  end

  def libraries = OF_MUSL

  def unmet_needs(needed, given)
    missing = needed.select { |symbol| symbol.binding == "GLOBAL" && !symbol.name.match?(given) }
    missing.reject { |symbol| @names.include?(symbol.name) }.map { |symbol| "needs #{symbol.name}, which musl hasn't" }
  end
end

# Directories of the system that built it, and libraries that others may not have.
def faults_of_links(file, libraries)
  dynamic = readelf("--dynamic", file)
  others = dynamic.scan(/\(NEEDED\).*\[(.+)\]/).flatten.grep_v(libraries)
  paths = dynamic.scan(/\((RPATH|RUNPATH)\)/).flatten
  others.map { |library| "needs #{library}" } + paths.map { |path| "has a #{path}" }
end

def faults_of_library(file, symbols)
  shown = symbols.select(&:is_defined).map(&:name) - SHOWN
  faults = shown.map { |name| "shows #{name}" }
  size = File.size(file)
  faults << "has #{size} bytes; #{LARGEST_LIBRARY} is the limit" if size > LARGEST_LIBRARY
  faults
end

# What keeps the file from a system, or is of no use there.
def faults(file, cpu, libc)
  symbols = symbols(file)
  is_library = file.end_with?(".so")
  faults = libc.unmet_needs(symbols.reject(&:is_defined), is_library ? OF_RUBY : NOTHING)
  faults.concat(faults_of_library(file, symbols)) if is_library
  faults.concat(faults_of_links(file, libc.libraries))
  faults << "has debug information" if readelf("--section-headers", file).include?(".debug_info")
  faults << "is for another CPU than #{cpu}" unless readelf("--file-header", file).include?(MACHINES.fetch(cpu))
  faults
end

cpu, libc, *files = ARGV
libc = libc.match?(/\A\d/) ? Glibc.new(libc) : Musl.new(libc)
found = files.flat_map { |file| faults(file, cpu, libc).map { |fault| "#{file} #{fault}" } }
warn found
exit found.empty?
