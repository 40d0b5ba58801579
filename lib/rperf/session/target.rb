# frozen_string_literal: true

module Rperf
  # A name of methods as a user gives it: `Order#total`, `Cart.find`, or `Cart#*` for all that a class has itself. To
  # look for them loads no code, and calls none of the program's.
  class Target
    # Methods of Module as the VM has them, whatever a class makes of them.
    NAME, ANCESTORS, CONST_GET, HAS_CONST, AUTOLOAD, INSTANCE_METHOD, HAS_METHOD, HAS_PRIVATE, METHODS,
      PRIVATE_METHODS, SINGLETON =
      %i[name ancestors const_get const_defined? autoload? instance_method method_defined? private_method_defined?
         instance_methods private_instance_methods singleton_class?].map { |name| Module.instance_method(name) }
    SINGLETON_CLASS = Kernel.instance_method(:singleton_class)
    ID = BasicObject.instance_method(:__id__)
    CODE = RubyVM::InstructionSequence
    ALL = "*"
    private_constant(*constants(false))

    class << self
      # @return [String, nil] the name of a class, or of the one whose singleton class this is
      def name_of(object)
        return unless Module === object # rubocop:disable Style/CaseEquality -- is_a? may be the program's

        object = object.attached_object if SINGLETON.bind_call(object)
        NAME.bind_call(object) if Module === object # rubocop:disable Style/CaseEquality
      end

      # @return [Array] equal for methods whose calls have one hook: those with the same code, but if a block is it
      def key_of(method)
        return [method] if method.is_a?(CODE)

        code = CODE.of(method)
        code.label.start_with?("block ") ? [code, ID.bind_call(method.owner), method.original_name] : [code]
      end
    end

    attr_reader :class_name
    # What the methods are known by that are counted.
    attr_accessor :keys

    def initialize(name)
      @name = name
      @class_name, @separator, @method = name.partition(/[#.]/)
      @keys = []
    end

    # @return [Boolean] whether it can be defined outside of any class
    def top_level? = @class_name == "Object" && @separator == "#" && @method != ALL

    # @return [Array<UnboundMethod>] those of Ruby that are there
    def methods = defined.select { |method| CODE.of(method) }

    # @return [Array<RubyVM::InstructionSequence>] methods that a file will define at its top level
    def methods_in(code)
      found = []
      code&.each_child { |child| found << child if child.label == @method }
      found
    end

    # @return [String, nil] why it can't be counted
    def obstacle
      "only: #{@name} is not written in Ruby: its calls can't be counted alone" if untraceable?
    end

    # @return [String, nil] what the profile is to say of it
    def note
      return obstacle if untraceable?
      return "#{@name} was not found" if @keys.empty?

      method = defined.first
      return if method.nil? || method.owner.equal?(scope)

      "#{@name} is #{Target.name_of(method.owner)}'s: its calls on all objects are counted"
    end

    private

    def untraceable? = @method != ALL && defined.any? { |method| !CODE.of(method) }

    # The methods, in whatever language.
    def defined
      scope = self.scope
      return [] unless scope
      return [own(scope, @method.to_sym)].compact unless @method == ALL

      names = METHODS.bind_call(scope, false) + PRIVATE_METHODS.bind_call(scope, false)
      names.map { |name| own(scope, name) }.select { |method| method.owner.equal?(scope) }
    end

    # The class that has the methods, if it is there.
    def scope
      found = @class_name.split("::").reduce(Object) do |outer, constant|
        break unless Module === outer # rubocop:disable Style/CaseEquality

        owner = owner_of(outer, constant)
        break if owner.nil? || AUTOLOAD.bind_call(owner, constant, false)

        CONST_GET.bind_call(owner, constant, false)
      end
      return unless Module === found # rubocop:disable Style/CaseEquality

      @separator == "#" ? found : SINGLETON_CLASS.bind_call(found)
    end

    # The class or module that has the constant, as `outer::Name` finds it: not Object, but for its own.
    def owner_of(outer, constant)
      ancestors = ANCESTORS.bind_call(outer)
      ancestors = ancestors.take_while { |it| !Object.equal?(it) } unless Object.equal?(outer)
      ancestors.find { |it| HAS_CONST.bind_call(it, constant, false) }
    end

    # The method of this name; that of the class itself, if modules that are put in front of it have one, too.
    def own(scope, name)
      return unless HAS_METHOD.bind_call(scope, name) || HAS_PRIVATE.bind_call(scope, name)

      method = first = INSTANCE_METHOD.bind_call(scope, name)
      method = method.super_method until method.nil? || method.owner.equal?(scope)
      method || first
    end
  end
  private_constant :Target
end
