# frozen_string_literal: true

require_relative "builtin"

module Rperf
  # Methods of libraries and of Ruby with one of rperf's around them. Each is kept in its class under another name, and
  # one of rperf's that calls it by that name comes in its place. A module that is prepended would do with less, but a
  # program may wrap the same method later by `alias_method`: the alias is the prepended one then, which calls the
  # program's, which calls the alias, and so on until the stack is full.
  module Wrapped
    # The names of wrapped methods begin with it.
    MARK = "__rperf"
    LOCK = Thread::Mutex.new
    # A half that is installed would stay one.
    LATER = { Object => :never }.freeze
    # rperf's own files are in it.
    DIRECTORY = "#{__dir__}/".freeze
    private_constant :LOCK, :LATER, :DIRECTORY

    # Takes effect once for each owner. What it hasn't stays away.
    #
    # @param owner [Module] the class or module that has the methods or, if it isn't a singleton class, gets them from
    #   another one: then those of that one are wrapped
    # @param wrapper [Module] has the methods that come in their place
    # @param prefix [String] of the names that the wrapped ones get: `prefix_NAME`. They are private. Where methods of
    #   two owners may call each other with super, it differs.
    def self.install(owner, wrapper, prefix = MARK)
      Builtin::HANDLE_INTERRUPT.call(LATER) do
        alone do
          names = Builtin::METHODS.bind_call(wrapper, false) + Builtin::PRIVATE_METHODS.bind_call(wrapper, false)
          names.each { |name| replace(owner, wrapper, name, :"#{prefix}_#{name}") }
        end
      end
    end

    # Sees the exceptions that pass a `rescue` of it, takes rperf's frames out of their backtraces, and rescues none: to
    # raise one again would call Kernel#raise, which may be the program's own.
    module OwnFrames
      def self.===(error)
        locations = Builtin::LOCATIONS.bind_call(error) or return false
        kept = Builtin::REJECT.bind_call(locations) do |it|
          path = Builtin::LOCATION_PATH.bind_call(it)
          path && Builtin::STARTS_WITH.bind_call(path, DIRECTORY)
        end
        Builtin::SET_BACKTRACE.bind_call(error, kept)
        false
      rescue FrozenError
        false # It stays as it is.
      end
    end
    private_constant :OwnFrames

    # Yields to a wrapped method, in the main Ractor. If that raises, the backtrace has no frames of rperf's.
    def self.unseen
      yield
    rescue OwnFrames
      nil # Never.
    end

    # @return [Boolean] whether it is the name of a method that is wrapped
    def self.kept?(name) = name.start_with?(MARK)

    # @return [UnboundMethod] the one that is wrapped, if `method` is the wrapper of one
    def self.original(method)
      path, = method.source_location
      return method unless path&.start_with?(__dir__)

      owner = Builtin::OWNER.bind_call(method)
      name = :"#{MARK}_#{method.name}"
      return method unless Builtin::HAS_PRIVATE.bind_call(owner, name)

      Builtin::INSTANCE_METHOD.bind_call(owner, name)
    end

    def self.replace(owner, wrapper, name, kept_name)
      method = own_method(owner, name) or return
      owner = Builtin::OWNER.bind_call(method)
      return if Builtin::PRIVATE_METHODS.bind_call(owner, false).include?(kept_name)

      Builtin::DEFINE_METHOD.bind_call(owner, kept_name, method)
      Builtin::PRIVATE.bind_call(owner, kept_name)
      Builtin::DEFINE_METHOD.bind_call(owner, name, Builtin::INSTANCE_METHOD.bind_call(wrapper, name))
      Builtin::PRIVATE.bind_call(owner, name) if Builtin::HAS_PRIVATE.bind_call(wrapper, name)
    end
    private_class_method :replace

    # The class's own method below those of modules that are prepended to it, or else the one that it inherits.
    def self.own_method(owner, name)
      prepended = Builtin::ANCESTORS.bind_call(owner).take_while { |it| !it.equal?(owner) }
      method = Builtin::INSTANCE_METHOD.bind_call(owner, name)
      while method && prepended.include?(Builtin::OWNER.bind_call(method))
        method = Builtin::SUPER_METHOD.bind_call(method)
      end
      return if method.nil?

      own = Builtin::OWNER.bind_call(method).equal?(owner)
      method if own || !Builtin::IS_SINGLETON.bind_call(owner)
    rescue NameError
      nil # It has none.
    end
    private_class_method :own_method

    # A handler of a signal may not wait for a lock: what it interrupts may have it.
    def self.alone
      begin
        LOCK.lock
        locked = true
      rescue ThreadError
        locked = false
      end
      yield
    ensure
      LOCK.unlock if locked
    end
    private_class_method :alone
  end
  private_constant :Wrapped
end
