# frozen_string_literal: true

module Rperf
  # Methods of Ruby as they are when the gem is loaded, because a program may put its own in their place. For several
  # files, and for code that is compiled later.
  module Builtin
    # Of Kernel.
    CLASS, SINGLETON_CLASS, SINGLETON_METHODS =
      %i[class singleton_class singleton_methods].map { |name| Kernel.instance_method(name) }
    # Of BasicObject.
    ID, SAME = %i[__id__ equal?].map { |name| BasicObject.instance_method(name) }
    # Of Thread itself.
    CURRENT_THREAD, HANDLE_INTERRUPT = %i[current handle_interrupt].map { |name| Thread.method(name) }
    SYMBOL_NAME = Symbol.instance_method(:name)
    # Of Module.
    NAME, ANCESTORS, CONST_GET, HAS_CONST, AUTOLOAD, INSTANCE_METHOD, HAS_METHOD, HAS_PRIVATE, METHODS,
      PRIVATE_METHODS, IS_SINGLETON, DEFINE_METHOD, PRIVATE =
      %i[name ancestors const_get const_defined? autoload? instance_method method_defined? private_method_defined?
         instance_methods private_instance_methods singleton_class? define_method private]
      .map { |name| Module.instance_method(name) }
    # Of exceptions, and of what their backtraces are made of.
    LOCATIONS, SET_BACKTRACE = %i[backtrace_locations set_backtrace].map { |name| Exception.instance_method(name) }
    LOCATION_PATH = Thread::Backtrace::Location.instance_method(:path)
    REJECT = Array.instance_method(:reject)
    STARTS_WITH = String.instance_method(:start_with?)
    # Of methods without an object.
    OWNER, SUPER_METHOD = %i[owner super_method].map { |name| UnboundMethod.instance_method(name) }
  end
  private_constant :Builtin
end
