# frozen_string_literal: true

module Imports
  # A file uses what another one defines. `from` and `to` are module paths: the folders and
  # the name of a file, without its extension. `place` is the file and line that says so.
  Use = Data.define(:from, :to, :place)

  # The uses of one source tree, and what is wrong with them.
  #
  # A file and the folder of its name are one part (`timer.rs` with `timer/`). Uses between
  # the parts of a folder must make no circle; within a part the same holds for its own
  # parts, of which the file that gave it its name is one.
  class Graph
    # `files` are the module paths of all. `floors`: of some folders the parts, floor by floor
    # from the ground up; each may use parts of its own floor and of lower ones only. The
    # file that gave the folder its name is the part ".".
    def initialize(name, files, uses, floors = {})
      @name = name
      @files = files
      @uses = uses.reject { |use| use.from == use.to }
      @floors = floors
    end

    def problems = unplaced + problems_in([], @uses)

    private

    def problems_in(folder, uses)
      between, within = uses.partition { |use| part(use.from, folder) != part(use.to, folder) }
      inner = within.group_by { |use| part(use.from, folder) }
      circles(folder, between) + upward(folder, between) +
        inner.flat_map { |name, inside| problems_in([*folder, name], inside) }
    end

    # Parts of a folder with floors that are on none.
    def unplaced
      @floors.flat_map do |folder, floors|
        folder = folder.split("/")
        inside = @files.select { |path| path.size > folder.size && path.take(folder.size) == folder }
        parts = inside.map { |path| part(path, folder) }.uniq - floors.flatten
        parts.map { |part| "#{@name}: say in bin/support/imports.rb on which floor #{[*folder, part].join("/")} is" }
      end
    end

    def part(path, folder) = path.fetch(folder.size, ".")

    def circles(folder, uses)
      following = uses.group_by { |use| part(use.from, folder) }
      found = following.keys.filter_map { |start| shortest_circle(start, folder, following) }
      found.uniq { |circle| circle.map { |use| part(use.from, folder) }.to_set }.map do |circle|
        parts = circle.map { |use| title(use.from, folder) }
        "#{@name}: circle #{[*parts, parts.first].join(" -> ")}\n#{places(circle)}"
      end
    end

    # The uses on the shortest way from `start` back to it; nil if there is none.
    def shortest_circle(start, folder, following)
      ways = { start => [] }
      parts = [start]
      until parts.empty?
        at = parts.shift
        following.fetch(at, []).each do |use|
          to = part(use.to, folder)
          return [*ways[at], use] if to == start
          next if ways.key?(to)

          ways[to] = [*ways[at], use]
          parts << to
        end
      end
      nil
    end

    def upward(folder, uses)
      floors = @floors.fetch(folder.join("/"), [])
      uses.filter_map do |use|
        from, to = [use.from, use.to].map { |path| floors.index { |parts| parts.include?(part(path, folder)) } }
        next unless from && to && from < to

        "#{@name}: #{title(use.from, folder)} is below #{title(use.to, folder)} and must not use it\n#{places([use])}"
      end
    end

    def name(path) = path.empty? ? "(root)" : path.join("/")
    def title(path, folder) = name(path.take(folder.size + 1))
    def places(uses) = uses.map { |use| "  #{use.place}: #{name(use.from)} uses #{name(use.to)}" }.join("\n")
  end
end
