# frozen_string_literal: true

require_relative "../stderr"

module Rperf
  # What the environment says about a profile that starts with the program: that it
  # is part of a session, whose directory has the rest, or all of it in variables.
  # Read by Rubies of any age: no syntax newer than Ruby 2.5.
  class Launch
    # The words that it shares with crates/rperf-session, which can't be asked here: a spec compares them.
    PREFIX = "RPERF_"
    ENABLED = "RPERF_ENABLED"
    SESSION = "RPERF_SESSION"
    SETTINGS = "settings"
    STATUS = "status"
    REFUSED = "refused"
    ANOTHER = "another"
    INITIATOR = "INITIATOR"
    INHERIT = "INHERIT"
    LISTEN = "LISTEN"
    ADDED = "ADDED_"
    ORIGINAL = "ORIGINAL_"
    SEPARATORS = { "RUBYOPT" => " ", "RUBYLIB" => ":" }.freeze

    # Another file is in the place of one of the session's.
    Exchanged = Class.new(StandardError)
    private_constant :Exchanged

    # The RPERF_* variables, or the session's settings, as "OUTPUT" => "path".
    attr_reader :variables

    # The session's directory, if there is a session.
    attr_reader :directory

    # Why this can't be profiled; nil: nothing is known to be in the way.
    attr_reader :obstacle

    # Whether the environment asks for a profile.
    def self.wanted?(environment)
      environment.key?(SESSION) || environment[ENABLED] == "1"
    end

    # A value that is neither on nor off is told once: children don't find it any more.
    def self.refuse_value(environment)
      value = environment[ENABLED].to_s
      return if value.empty? || value == "0"

      environment.delete(ENABLED)
      new({}).refuse("#{ENABLED} must be 1 or 0, not #{value[0, 40].inspect}")
    end

    # Leaves in the environment only what children need to be profiled too.
    def self.take(environment)
      directory = environment[SESSION]
      return new(take_variables(environment)) unless directory

      launch = of_session(directory)
      launch.hide(environment) unless launch.over? || launch.inherited?
      launch
    rescue StandardError => e
      new({}, obstacle: unreadable(e))
    end

    def self.take_variables(environment)
      ours = environment.select { |name, _| name.start_with?(PREFIX) }
      ours.each_key { |name| environment.delete(name) }
      ours.transform_keys { |name| name[PREFIX.size..-1] }.transform_values { |value| in_locale(value) }
    end
    private_class_method :take_variables

    # As paths from elsewhere are, to which it may be joined: ENV has bytes where a value is no text.
    def self.in_locale(value)
      value.dup.force_encoding(Encoding.find("locale"))
    end
    private_class_method :in_locale

    # The directory is looked at as it is: somebody else may have made one in its place. Only if nothing is there is
    # the session over.
    def self.of_session(path)
      stat = File.lstat(path)
      unless stat.directory? && stat.owned? && (stat.mode & 0o777) == 0o700
        return new({}, obstacle: "the directory #{path} (#{SESSION}) is not private to this user")
      end

      new(settings_in(path), directory: path)
    rescue Errno::ENOENT
      new({}, over: true)
    rescue StandardError => e
      # Where the directory is ours, those who merge are told, too.
      new({}, directory: stat && path, obstacle: unreadable(e))
    end
    private_class_method :of_session

    # Ruby's messages name its functions, too.
    def self.unreadable(error)
      reason = error.is_a?(SystemCallError) ? SystemCallError.new(error.errno).message : error.message
      "its session's settings can't be read (#{reason})"
    end
    private_class_method :unreadable

    # Split as bytes: a path need not be text in the locale's encoding.
    def self.settings_in(directory)
      path = File.join(directory, SETTINGS)
      pairs = own_file(path, File::RDONLY, &:read).split("\0").map { |pair| pair.split("=", 2) }
      raise Exchanged, "#{path} holds none" unless pairs.any? && pairs.all? { |pair| pair.size == 2 }

      pairs.to_h.transform_values { |value| in_locale(value) }
    end
    private_class_method :settings_in

    # What the block makes of the file, if it is still the session's: who can exchange the directory may have put
    # another user's file there, or a link.
    def self.own_file(path, mode)
      File.open(path, mode | File::NOFOLLOW | File::NONBLOCK, 0o600) do |file|
        file.binmode
        stat = file.stat
        # It has been removed meanwhile.
        raise Errno::ENOENT, path if stat.nlink.zero?
        raise Exchanged, "#{path} is another file" unless stat.file? && stat.owned? && stat.nlink == 1

        yield file
      end
    end

    def initialize(variables, directory: nil, obstacle: nil, over: false)
      @variables = variables
      @directory = directory
      @obstacle = obstacle
      @over = over
    end

    # Whether the session has ended before this program began.
    def over?
      @over
    end

    # Whether the children of a program that is profiled are, too.
    def inherited?
      variables[INHERIT] == "1"
    end

    # Gives the program the environment that the user gave it.
    def hide(environment)
      environment.delete(SESSION)
      SEPARATORS.each { |name, separator| restore(environment, name, separator) }
    end

    # Undoes it: the environment has the Rubies that are started take part in the session in `directory`.
    def show(environment, directory)
      SEPARATORS.each do |name, separator|
        ours = variables["#{ADDED}#{name}"]
        environment[name] = [ours, environment[name]].compact.map(&:b).join(separator) if ours
      end
      environment[SESSION] = directory
    end

    # Tells who merges the session's profiles that this Ruby came after the first one.
    def report_another
      report(ANOTHER)
    end

    # Whether this is the first Ruby, where only one is to be profiled.
    def first?
      directory.nil? || inherited? || first_to?("profile")
    end

    # Says why the program runs without a profile; of all programs of a session, the first one does.
    def refuse(reason)
      return if over?

      report("#{REFUSED} #{reason}")
      Stderr.write("rperf: #{reason}; running without profiling\n") if directory.nil? || first_to?("refuse")
    end

    private

    def report(line)
      return unless directory

      mode = File::WRONLY | File::APPEND | File::CREAT
      Launch.own_file(File.join(directory, STATUS), mode) { |file| file.syswrite("#{line}\n") }
    rescue SystemCallError, Exchanged
      nil # The session has ended; nobody reads it now.
    end

    # The directory is made by one atomic call, so that one of two wins.
    def first_to?(action)
      Dir.mkdir(File.join(directory, "first-to-#{action}"))
      true
    rescue SystemCallError
      false
    end

    # A value that somebody has added to since only loses our part of it. As bytes, as above.
    def restore(environment, name, separator)
      values = [variables["#{ADDED}#{name}"], variables["#{ORIGINAL}#{name}"], environment[name]]
      ours, original, value = values.map { |text| text&.b }
      return if ours.nil? || value.nil?

      if value == [ours, original].compact.join(separator)
        environment[name] = original
      else
        parts = value.split(separator)
        parts.delete_at(parts.index(ours) || parts.size)
        environment[name] = parts.empty? ? nil : parts.join(separator)
      end
    end
  end
  private_constant :Launch
end
