# frozen_string_literal: true

require "fileutils"
require "shellwords"

# Containers by namespaces of Linux, in the place of Docker: a Containerfile makes their image, and `docker run` lines
# say what they share. Goes with Commands and Servers.
module Containers
  SCRIPTS = File.join(Commands::ROOT, "spec/fixtures/containers")
  MACHINE = %w[unshare --user --map-root-user --mount --pid --fork --kill-child --mount-proc].freeze
  PARTS = %w[unshare --mount --ipc --uts].freeze
  PROCESSES = %w[--pid --fork --kill-child].freeze
  # All options that a `docker run` line may have here, and whether a value follows.
  OPTIONS = { "--rm" => false, "-it" => false, "--detach" => false, "--name" => true, "--publish" => true,
              "--pid" => true, "--network" => true, "--volume" => true }.freeze

  # Why there can be none; nil if there can.
  def self.missing
    return "needs Linux" unless RUBY_PLATFORM.include?("linux")

    inner = "mount -t tmpfs none /mnt && unshare --mount --pid --fork --mount-proc unshare --user --map-user=1000 true"
    system(*MACHINE, "sh", "-c", inner, out: File::NULL, err: File::NULL) ? nil : "needs the right to make namespaces"
  end

  # The options of a `docker run` line by their names, and the words behind the image's name.
  def self.parsed(line)
    words = line.shellsplit.drop(2)
    options = {}
    while words.first.start_with?("-")
      name = words.shift
      options[name] = OPTIONS.fetch(name) ? words.shift : true
    end
    [options, words.drop(1)]
  end

  # What the base image has: Ruby, and Puma, as there is no network to install it from.
  def base_environment
    path = ["/gems/bin", File.dirname(ruby), "/usr/bin", "/bin"]
    { "PATH" => path.join(":"), "GEM_HOME" => "/gems", "GEM_PATH" => ["/gems", *lent_gems].join(":"),
      "LANG" => "C.UTF-8" }
  end

  # Makes the image of the Containerfile, whose files are in `context`, and starts a container.
  # @param options [Hash] those of its `docker run` line
  # @return [Servers::Server] whose `pid` is that of the machine
  def start_container(containerfile, options)
    start_server("container") do |port|
      write_file("steps", [*base_commands, *image(containerfile), *start(containerfile, options, port)].join("\n"))
      [*MACHINE, "bash", "#{SCRIPTS}/machine.sh", RbConfig::CONFIG["prefix"], *lent_gems]
    end
  end

  # Runs a command in a second container of the image.
  # @param options [Hash] those of its `docker run` line
  def run_beside(server, containerfile, options, command)
    parts = [*PARTS, *("--net" if options["--network"] == "none")]
    parts.concat(PROCESSES) unless options["--pid"]
    inside = [*parts, *container(containerfile, options, command)].shelljoin
    inside = "nsenter --pid=/proc/$(cat app)/ns/pid #{inside}" if options["--pid"]
    run("nsenter", "--target", children(server.pid).first.to_s, "--user", "--mount", "--pid", "--preserve-credentials",
        "sh", "-c", "cd #{directory.shellescape} && exec #{inside}")
  end

  private

  def lent_gems = [*%w[puma nio4r].map { |name| Gem::Specification.find_by_name(name).base_dir }, Gem.default_dir].uniq

  def children(pid) = File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)

  # Of users' numbers there is one: what is root's as the image is made is the user's in a container. So nothing is to
  # be done for a `chown`, which would fail; nor for `apk`, as nothing can be downloaded.
  def base_commands
    texts = { "puma" => "exec #{gem_command("puma").shelljoin} \"$@\"", "chown" => "exit 0", "apk" => "exit 0" }
    texts.map do |name, text|
      path = "image/gems/bin/#{name}"
      "printf '%s\\n' '#!/bin/sh' #{text.shellescape} >#{path} && chmod +x #{path}"
    end
  end

  # The lines of the shell that do what the Containerfile says.
  def image(containerfile)
    containerfile.steps.map do |kind, *values|
      case kind
      when :directory then "mkdir -p image#{values.first}"
      when :copy then "(cd context && cp -r #{values.first.join(" ")} #{directory.shellescape}/image#{values.last})"
      when :run
        command, place, environment = values
        [*PARTS, *entry(nil, place, nil, environment, ["/bin/sh", "-c", command])].shelljoin
      end
    end
  end

  # A volume that is new gets the mode of the image's directory, as Docker has it.
  def start(containerfile, options, port)
    command = container(containerfile, options, containerfile.command, "PORT" => port.to_s)
    ["chmod --reference=image#{options.fetch("--volume").split(":").last} volume",
     "#{[*PARTS, *PROCESSES, *command].shelljoin} &",
     "until pid=$(cat /proc/$!/task/$!/children) && [ -n \"$pid\" ]; do sleep 0.01; done",
     "echo $pid >app",
     "wait"]
  end

  def container(containerfile, options, command, more = {})
    volume = options["--volume"]&.split(":")&.last
    entry(containerfile.user, containerfile.directory, volume, containerfile.environment.merge(more), command)
  end

  def entry(user, place, volume, environment, command)
    pairs = environment.map { |pair| pair.join("=") }
    ["bash", "#{SCRIPTS}/container.sh", user.to_s, place, volume.to_s, *pairs, *command]
  end
end
