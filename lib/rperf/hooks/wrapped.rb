# frozen_string_literal: true

require_relative "../builtin"

module Rperf
  # Methods of libraries and of Ruby with one of rperf's around them. Each is taken out of its class under another name,
  # and one of rperf's that calls it by that name comes in its place. A module that is prepended would do with less, but
  # a program may wrap the same method later by `alias_method`: the alias is the prepended one then, which calls the
  # program's, which calls the alias, and so on until the stack is full.
  module Wrapped
    # @param owner [Module] the class or module that has the methods, or gets them from another one
    # @param wrapper [Module] has the methods that come in their place
    # @param prefix [String] of the names that the wrapped ones get: `prefix_NAME`. They are private.
    def self.install(owner, wrapper, prefix = "__rperf")
      public_methods = Builtin::METHODS.bind_call(wrapper, false)
      public_methods.each { |name| replace(owner, wrapper, name, :"#{prefix}_#{name}") }
      Builtin::PRIVATE_METHODS.bind_call(wrapper, false).each do |name|
        Builtin::PRIVATE.bind_call(replace(owner, wrapper, name, :"#{prefix}_#{name}"), name)
      end
    end

    # @return [Module] the owner of the method
    def self.replace(owner, wrapper, name, wrapped_name)
      wrapped = own_method(owner, name)
      owner = Builtin::OWNER.bind_call(wrapped)
      Builtin::DEFINE_METHOD.bind_call(owner, wrapped_name, wrapped)
      Builtin::PRIVATE.bind_call(owner, wrapped_name)
      Builtin::DEFINE_METHOD.bind_call(owner, name, Builtin::INSTANCE_METHOD.bind_call(wrapper, name))
      owner
    end

    # The class's own method below those that are prepended to it, or else the one that it gets from another class or
    # module.
    def self.own_method(owner, name)
      first = method = Builtin::INSTANCE_METHOD.bind_call(owner, name)
      while method
        return method if Builtin::OWNER.bind_call(method).equal?(owner)

        method = Builtin::SUPER_METHOD.bind_call(method)
      end
      first
    end
    private_class_method :replace, :own_method
  end
  private_constant :Wrapped
end
