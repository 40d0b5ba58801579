# frozen_string_literal: true

require "json"
require "shellwords"

# A Containerfile, as far as ours need it: what is done to make an image, and what its containers begin with. Anything
# else in it is an error, as it would be left out.
class Containerfile
  # As the image was when all was done; `steps` are of [:copy, sources, destination], [:directory, path] and
  # [:run, command, directory, environment].
  attr_reader :steps, :environment, :user, :directory, :command

  # @param base [Hash] the environment that the base image has
  def initialize(path, base)
    @steps = []
    @environment = base
    @directory = "/"
    lines = File.readlines(path, chomp: true).grep_v(/\A\s*(#|\z)/)
    lines.join("\n").gsub(/\\\n/, " ").each_line(chomp: true) { |line| take(*line.split(" ", 2)) }
  end

  private

  def take(word, rest)
    case word
    when "FROM" then nil
    when "COPY" then copy(rest.split)
    when "RUN" then run(rest)
    when "ENV" then @environment = @environment.merge(rest.shellsplit.to_h { |pair| pair.split("=", 2) })
    when "WORKDIR" then @steps << [:directory, @directory = File.expand_path(rest, @directory)]
    when "USER" then @user = rest
    when "CMD" then @command = JSON.parse(rest)
    else raise "#{word} of a Containerfile isn't known here"
    end
  end

  def copy(words)
    raise "COPY with options isn't known here" if words.first.start_with?("-")

    @steps << [:copy, words[..-2], File.expand_path(words.last, @directory)]
  end

  def run(command)
    raise "RUN after USER isn't known here" if user

    @steps << [:run, command, @directory, @environment]
  end
end
