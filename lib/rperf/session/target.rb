# frozen_string_literal: true

module Rperf
  # A name of methods as a user gives it: `Order#total`, `Cart.find`, or `Cart#*` for all that a class has itself. To
  # look for them loads no code, and calls none of the program's.
  class Target
    CODE = RubyVM::InstructionSequence
    METHOD_NAME = /\A(?:[[:upper:]][[:alnum:]_]*(?:::|(?=[#.])))+[#.]./
    ALL = "*"
    private_constant(*(constants(false) - [:CODE]))

    class << self
      # @return [Boolean] whether the text names methods by their class
      def name?(text) = text.match?(METHOD_NAME)

      # @return [String, nil] the name of a class, or of the one whose singleton class this is
      def name_of(object)
        return unless Module === object # rubocop:disable Style/CaseEquality -- is_a? may be the program's

        object = object.attached_object if Builtin::IS_SINGLETON.bind_call(object)
        Builtin::NAME.bind_call(object) if Module === object # rubocop:disable Style/CaseEquality
      end

      # @return [Array] equal for methods whose calls have one hook: those with the same code, but if a block is it
      def key_of(method)
        return [method] if method.is_a?(CODE)

        code = CODE.of(method)
        block?(code) ? [code, Builtin::ID.bind_call(method.owner), method.original_name] : [code]
      end

      # @return [Boolean] whether a method with this code is one that a block defines
      def block?(code) = code.label.start_with?("block ")

      # @return [Array<UnboundMethod>] those that a class or module has itself, in whatever language
      def own_methods(scope)
        names = Builtin::METHODS.bind_call(scope, false) + Builtin::PRIVATE_METHODS.bind_call(scope, false)
        names = names.reject { |name| Wrapped.kept?(name) }
        names.filter_map { |name| own(scope, name) }.select { |method| method.owner.equal?(scope) }
      end

      # @return [UnboundMethod, nil] the class's own method of this name, if modules that are put in front of it, or
      #   rperf itself, have one, too
      def own(scope, name)
        return unless Builtin::HAS_METHOD.bind_call(scope, name) || Builtin::HAS_PRIVATE.bind_call(scope, name)

        method = first = Builtin::INSTANCE_METHOD.bind_call(scope, name)
        method = method.super_method until method.nil? || method.owner.equal?(scope)
        Wrapped.original(method || first)
      end

      def singleton_class_of(object) = Builtin::SINGLETON_CLASS.bind_call(object)
    end

    # @return [String]
    attr_reader :name

    # @return [Hash] what the methods are known by that are counted
    attr_reader :keys

    def initialize(name)
      @name = name
      @class_name, @separator, @method = name.partition(/[#.]/)
      @keys = {}
    end

    # @return [Boolean] whether it can be defined outside of any class: then the file says so when it is compiled
    def compiled? = @class_name == "Object" && @separator == "#" && @method != ALL

    # @return [Array<UnboundMethod>] those of Ruby that are there
    def methods = defined.select { |method| CODE.of(method) }

    # @return [Array<UnboundMethod>, nil] those that are there when the body of a class of this name has ended
    def methods_after(name, _scope) = (methods if name == @class_name)

    # @return [Array<RubyVM::InstructionSequence>, nil] methods that a file will define at its top level
    def methods_in(code)
      found = []
      code&.each_child { |child| found << child if child.label == @method }
      found unless found.empty?
    end

    # @return [String, nil] why it can't be counted
    def obstacle
      "only: #{@name} is not written in Ruby: its calls can't be counted alone" if untraceable?
    end

    # @return [Boolean] whether there is any such method
    def found? = !@keys.empty? || untraceable?

    # @return [Boolean] whether there is such a method, but none of Ruby code
    def untraceable? = @method != ALL && defined.any? { |method| !CODE.of(method) }

    # @return [String, nil] what the profile is to say of it
    def note
      return obstacle if untraceable?
      return "#{@name} was not found" unless found?

      method = defined.first
      return if method.nil? || method.owner.equal?(scope)

      "#{@name} is #{Target.name_of(method.owner)}'s: its calls on all objects are counted"
    end

    private

    # The methods, in whatever language.
    def defined
      scope = self.scope
      return [] unless scope

      @method == ALL ? Target.own_methods(scope) : [Target.own(scope, @method.to_sym)].compact
    end

    # The class that has the methods, if it is there.
    def scope
      found = @class_name.split("::").reduce(Object) do |outer, constant|
        break unless Module === outer # rubocop:disable Style/CaseEquality

        owner = owner_of(outer, constant)
        break if owner.nil? || Builtin::AUTOLOAD.bind_call(owner, constant, false)

        Builtin::CONST_GET.bind_call(owner, constant, false)
      end
      return unless Module === found # rubocop:disable Style/CaseEquality

      @separator == "#" ? found : Target.singleton_class_of(found)
    end

    # The class or module that has the constant, as `outer::Name` finds it: not Object, but for its own.
    def owner_of(outer, constant)
      ancestors = Builtin::ANCESTORS.bind_call(outer)
      ancestors = ancestors.take_while { |it| !Object.equal?(it) } unless Object.equal?(outer)
      ancestors.find { |it| Builtin::HAS_CONST.bind_call(it, constant, false) }
    end
  end
  private_constant :Target
end
