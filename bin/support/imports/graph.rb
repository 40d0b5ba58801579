# frozen_string_literal: true

module Imports
  # A file uses what another one defines. `from` and `to` are module paths: the folders and
  # the name of a file, without its extension. `place` is the file and line that says so.
  Use = Data.define(:from, :to, :place)

  # The uses of one source tree, and what is wrong with them.
  #
  # A file and the folder of its name are one room (`timer.rs` with `timer/`). Uses between
  # the rooms of a folder must make no circle; within a room the same holds for its own
  # rooms, of which the file that gave it its name is one.
  class Graph
    # `files` are the module paths of all. `floors`: of some folders the rooms, floor by floor
    # from the ground up; each may use rooms of its own floor and of lower ones only. The
    # file that gave the folder its name is the room ".".
    def initialize(name, files, uses, floors = {})
      @name = name
      @files = files
      @uses = uses.reject { |use| use.from == use.to }
      @floors = floors
    end

    def problems = strangers + problems_in([], @uses)

    private

    def problems_in(folder, uses)
      between, within = uses.partition { |use| room(use.from, folder) != room(use.to, folder) }
      inner = within.group_by { |use| room(use.from, folder) }
      circles(folder, between) + upward(folder, between) +
        inner.flat_map { |name, inside| problems_in([*folder, name], inside) }
    end

    # Rooms of a folder with floors that are on none.
    def strangers
      @floors.flat_map do |folder, floors|
        inside = @files.select { |path| path.size > folder.count("/") + 1 && path.join("/").start_with?("#{folder}/") }
        rooms = inside.map { |path| room(path, folder.split("/")) }.uniq - floors.flatten
        rooms.map { |room| "#{@name}: say in bin/support/imports.rb on which floor #{folder}/#{room} is" }
      end
    end

    def room(path, folder) = path.fetch(folder.size, ".")

    def circles(folder, uses)
      next_rooms = uses.group_by { |use| room(use.from, folder) }
      found = next_rooms.keys.filter_map { |start| shortest_circle(start, folder, next_rooms) }
      found.uniq { |circle| circle.map { |use| room(use.from, folder) }.to_set }.map do |circle|
        rooms = circle.map { |use| title(use.from, folder) }
        "#{@name}: circle #{[*rooms, rooms.first].join(" -> ")}\n#{places(circle)}"
      end
    end

    # The uses on the shortest way from `start` back to it; nil if there is none.
    def shortest_circle(start, folder, next_rooms)
      ways = { start => [] }
      rooms = [start]
      until rooms.empty?
        at = rooms.shift
        next_rooms.fetch(at, []).each do |use|
          to = room(use.to, folder)
          return [*ways[at], use] if to == start
          next if ways.key?(to)

          ways[to] = [*ways[at], use]
          rooms << to
        end
      end
      nil
    end

    def upward(folder, uses)
      floors = @floors.fetch(folder.join("/"), [])
      uses.filter_map do |use|
        from, to = [use.from, use.to].map { |path| floors.index { |rooms| rooms.include?(room(path, folder)) } }
        next unless from && to && from < to

        "#{@name}: #{title(use.from, folder)} is below #{title(use.to, folder)} and must not use it\n#{places([use])}"
      end
    end

    def title(path, folder) = path.empty? ? "(root)" : path.take(folder.size + 1).join("/")
    def places(uses) = uses.map { |use| "  #{use.place}: #{use.from.join("/")} uses #{use.to.join("/")}" }.join("\n")
  end
end
