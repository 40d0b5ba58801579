# frozen_string_literal: true

module Rperf
  # The methods that files define, as a user names them: `app/models/**`, `lib/shop/cart.rb`. To look for them loads no
  # code, and calls none of the program's.
  class TargetFiles
    # Parts of a file that are no methods. No name after `def` looks like this.
    NO_METHOD = /\A<(?:class:|module:|main>|top \(required\)>|compiled>)|\Asingleton class\z/
    ALL_BELOW = %r{/\*\*\z}
    GLOB = /[\[\]{}*?\\]/
    private_constant(*constants(false))

    # @return [String] the pattern as the user gave it
    attr_reader :name

    # @return [Hash] what the methods are known by that are counted
    attr_reader :keys

    # @param pattern [String] as File.fnmatch? takes it; below the current directory, if it is not absolute
    def initialize(pattern)
      @name = pattern
      below = pattern.start_with?("/") ? "" : "#{Dir.pwd.gsub(GLOB) { |it| "\\#{it}" }}/"
      @pattern = (below + pattern.delete_prefix("./")).sub(ALL_BELOW, "/**/*")
      @matching = {}
      @keys = {}
    end

    # Files say more when they are compiled.
    def compiled? = true

    # @return [Array<UnboundMethod>] all that are there, when asked for the first time; later ones are told of
    def methods
      return [] if @is_asked

      @is_asked = true
      found = []
      ObjectSpace.each_object(Module) { |it| found.concat(methods_of(it)) }
      without_nested(found)
    end

    # @return [Array<UnboundMethod>, nil] those of a class or module whose body has ended
    def methods_after(_name, scope)
      # Those that blocks define; the others are known since the file was compiled.
      found = methods_of(scope).select { |method| Target.block?(Target::CODE.of(method)) }
      found unless found.empty?
    end

    # @return [Array<RubyVM::InstructionSequence>, nil] methods that a file will define
    def methods_in(code) = (outermost_in(code) if match?(code))

    # @return [nil] none is known before the files are
    def obstacle = nil

    # @return [Boolean] false, because files are of Ruby code
    def untraceable? = false

    # @return [Boolean] whether there is any method of such a file
    def found? = !@keys.empty?

    # @return [String, nil] what the profile is to say of it
    def note = ("#{@name}: no method of such a file was found" unless found?)

    private

    # The methods of a class or module and of its singleton class that are in these files.
    def methods_of(scope)
      return [] unless Module === scope # rubocop:disable Style/CaseEquality -- is_a? may be the program's

      scopes = [scope]
      scopes << Target.singleton_class_of(scope) unless Builtin::SINGLETON_METHODS.bind_call(scope, false).empty?
      scopes.flat_map { |it| Target.own_methods(it) }.select { |method| match?(Target::CODE.of(method)) }
    end

    def match?(code)
      path = code&.absolute_path
      return false unless path

      @matching.fetch(path) { @matching[path] = File.fnmatch?(@pattern, path, File::FNM_PATHNAME) }
    end

    # A hook of a method is one of the methods that are defined in it, too.
    def without_nested(methods)
      codes = methods.map { |method| Target::CODE.of(method) }
      nested = codes.flat_map { |code| Target.block?(code) ? [] : outermost_in(code) }.to_h { |code| [code, true] }
      methods.zip(codes).filter_map { |method, code| method unless nested[code] }
    end

    def outermost_in(code)
      found = []
      waiting = [code]
      while (outer = waiting.pop)
        outer.each_child { |it| method?(it) ? found << it : waiting << it }
      end
      found
    end

    def method?(code) = code.label == code.base_label && !code.label.match?(NO_METHOD)
  end
  private_constant :TargetFiles
end
