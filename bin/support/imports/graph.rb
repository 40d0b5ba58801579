# frozen_string_literal: true

module Imports
  # A file uses what another one defines. `from` and `to` are module paths: the directories and
  # the name of a file, without its extension. `place` is the file and line that says so.
  Use = Data.define(:from, :to, :place)

  # The uses of one source tree, and what is wrong with them.
  #
  # A file and the directory of its name are one part (`timer.rs` with `timer/`). Uses between
  # the parts of a directory must make no circle; within a part the same holds for its own
  # parts, of which the file that gave it its name is one.
  class Graph
    # `files` are the module paths of all. `floors`: of some directories the parts, floor by floor
    # from the ground up; each may use parts of its own floor and of lower ones only. The
    # file that gave the directory its name is the part ".".
    def initialize(name, files, uses, floors = {})
      @name = name
      @files = files
      @uses = uses.reject { |use| use.from == use.to }
      @floors = floors
    end

    def problems = unplaced + problems_in([], @uses)

    private

    def problems_in(directory, uses)
      between, within = uses.partition { |use| part(use.from, directory) != part(use.to, directory) }
      inner = within.group_by { |use| part(use.from, directory) }
      circles(directory, between) + upward(directory, between) +
        inner.flat_map { |name, inside| problems_in([*directory, name], inside) }
    end

    # Parts of a directory with floors that are on none.
    def unplaced
      @floors.flat_map do |directory, floors|
        directory = directory.split("/")
        inside = @files.select { |path| path.size > directory.size && path.take(directory.size) == directory }
        parts = inside.map { |path| part(path, directory) }.uniq - floors.flatten
        parts.map { |part| "#{@name}: say in bin/support/imports.rb on which floor #{[*directory, part].join("/")} is" }
      end
    end

    def part(path, directory) = path.fetch(directory.size, ".")

    def circles(directory, uses)
      following = uses.group_by { |use| part(use.from, directory) }
      found = following.keys.filter_map { |start| shortest_circle(start, directory, following) }
      found.uniq { |circle| circle.map { |use| part(use.from, directory) }.to_set }.map do |circle|
        parts = circle.map { |use| title(use.from, directory) }
        "#{@name}: circle #{[*parts, parts.first].join(" -> ")}\n#{places(circle)}"
      end
    end

    # The uses on the shortest way from `start` back to it; nil if there is none.
    def shortest_circle(start, directory, following)
      ways = { start => [] }
      parts = [start]
      until parts.empty?
        at = parts.shift
        following.fetch(at, []).each do |use|
          to = part(use.to, directory)
          return [*ways[at], use] if to == start
          next if ways.key?(to)

          ways[to] = [*ways[at], use]
          parts << to
        end
      end
      nil
    end

    def upward(directory, uses)
      floors = @floors.fetch(directory.join("/"), [])
      uses.filter_map do |use|
        from, to = [use.from, use.to].map { |path| floors.index { |parts| parts.include?(part(path, directory)) } }
        next unless from && to && from < to

        "#{@name}: #{title(use.from, directory)} is below #{title(use.to, directory)} and must not use it\n" \
          "#{places([use])}"
      end
    end

    def name(path) = path.empty? ? "(root)" : path.join("/")
    def title(path, directory) = name(path.take(directory.size + 1))
    def places(uses) = uses.map { |use| "  #{use.place}: #{name(use.from)} uses #{name(use.to)}" }.join("\n")
  end
end
