# frozen_string_literal: true

require_relative "graph"

module Imports
  # The uses between the files of one Rust crate, read from its `use` items and paths. Code
  # for tests doesn't count. `mod` says that a child exists, and `pub use` gives a name to
  # it: neither is a use, unless the file itself needs the name.
  class RustCrate
    NOT_CODE = %r{//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\])'}m
    FOR_TESTS = /#\[cfg\((?:test|(?:any|all)\(test\b[^\]]*)\)\]/
    MOD = /^[ \t]*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*;/
    USE = /^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);/
    PATH = /(?<![\w:])(?:(?:crate|self|super)(?:::\w+)+|[a-z]\w*(?=::\w))/

    # `public`: other files may use the name by the path of this one.
    Import = Data.define(:path, :name, :public, :line)

    # One file: its module path, its imports, and the rest of its code.
    Source = Data.define(:file, :module_path, :imports, :code)

    attr_reader :directory

    # `directory` is the crate's `src`, relative to `root`.
    def initialize(root, directory)
      @directory = directory
      @sources = Dir.glob("**/*.rs", base: File.join(root, directory)).sort.to_h do |name|
        source = parse(File.join(root, directory, name), File.join(directory, name), module_path(name))
        [source.module_path, source]
      end
      @test_modules&.each { |tests| @sources.reject! { |path, _| path.take(tests.size) == tests } }
    end

    def files = @sources.keys
    def uses = @sources.each_value.flat_map { |source| imported(source) + spelled_out(source) }

    private

    def module_path(name) = name.delete_suffix(".rs").delete_suffix("/mod").split("/") - %w[lib main]

    def parse(path, file, module_path)
      code = File.read(path).gsub(NOT_CODE) { |text| blank(text) }
      code = without_tests(code, module_path)
      imports = matches(code, USE).flat_map do |item, line|
        expand(item[2]).map { |names, as| Import.new(names, as, !item[1].nil?, line) }
      end
      code = [USE, MOD].reduce(code) { |rest, items| rest.gsub(items) { |item| blank(item) } }
      Source.new(file, module_path, imports, code)
    end

    # All matches, with the line that each begins on.
    def matches(code, pattern)
      found = []
      code.scan(pattern) { found << Regexp.last_match }
      found.map { |match| [match, match.pre_match.count("\n") + 1] }
    end

    def blank(text) = text.gsub(/[^\n]/, " ")

    def without_tests(code, module_path)
      while (at = code.index(FOR_TESTS))
        ending = item_end(code, at + code[at..][FOR_TESTS].size)
        item = code[at...ending]
        name = item[/\bmod\s+(\w+)\s*;/, 1]
        (@test_modules ||= []) << [*module_path, name] if name
        code[at...ending] = blank(item)
      end
      code
    end

    # Where the item ends that begins at `at`: after its `;`, or after its body.
    def item_end(code, at)
      depth = 0
      (at...code.size).each do |here|
        case code[here]
        when "(", "[", "{" then depth += 1
        when ")", "]", "}" then depth -= 1
        end
        closes = code[here] == "}" && !code[at..here].match?(/\A(?:\s*#\[[^\]]*\])*\s*(?:pub\S*\s+)?use\b/)
        return here + 1 if depth.zero? && (closes || code[here] == ";")
      end
      code.size
    end

    # The paths of a `use` tree, each with the name that it gets here.
    def expand(tree, before = [])
      head, braces = tree.strip.match(/\A([^{]*)(?:\{(.*)\})?\z/m).captures
      return branches(braces).flat_map { |branch| expand(branch, before + names(head)) } if braces

      path, as = head.split(/\s+as\s+/)
      path = before + names(path)
      path.pop if path.last == "self" && path.size > 1
      [[path, as&.strip || path.last]]
    end

    def names(path) = path.split("::").map(&:strip).reject(&:empty?)

    # The parts of what is in braces, at the commas that are in no further braces.
    def branches(text)
      depth = 0
      parts = text.each_char.slice_when do |char, _|
        depth += { "{" => 1, "}" => -1 }.fetch(char, 0)
        char == "," && depth.zero?
      end
      parts.map { |part| part.join.delete_suffix(",") }.reject { |part| part.strip.empty? }
    end

    def imported(source)
      source.imports.filter_map do |import|
        # What `*` hands on isn't known.
        next if import.public && import.name != "*" && !source.code.match?(/\b#{import.name}\b/)

        use(source, import.path, import.line)
      end
    end

    def spelled_out(source)
      matches(source.code, PATH).filter_map do |path, line|
        names = names(path[0])
        # Other short paths begin with a name that is imported or a crate's.
        next if names.one? && !@sources.key?(source.module_path + names)

        use(source, names, line)
      end
    end

    def use(source, path, line)
      to = resolve(source.module_path, path)
      Use.new(source.module_path, to, "#{source.file}:#{line}") if to && to != source.module_path
    end

    # The module whose file has what `path` names, seen from module `from`; nil if another
    # crate has it.
    def resolve(from, path, seen = [])
      first, *rest = path
      case first
      when "crate" then look_up([], rest, seen)
      when "self" then look_up(from, rest, seen)
      when "super" then rest.first == "super" ? resolve(from[...-1], rest, seen) : look_up(from[...-1], rest, seen)
      else look_up(from, path, seen) if @sources.key?([*from, first]) || import_of(from, first, seen)
      end
    end

    def look_up(at, names, seen)
      names.each_with_index do |name, index|
        inner = [*at, name]
        next at = inner if @sources.key?(inner)

        import = import_of(at, name, seen)
        return at unless import

        # The crate's own name for something: it is where that is.
        return resolve(at, import.path + names.drop(index + 1), [*seen, import])
      end
      at
    end

    def import_of(at, name, seen) = @sources[at]&.imports&.find { |it| it.name == name && !seen.include?(it) }
  end
end
