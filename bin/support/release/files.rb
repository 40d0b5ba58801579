# frozen_string_literal: true

module Release
  # The files that say the version, changed in a directory.
  module Files
    VERSION = /^(\s*VERSION = )"(.*)"$/
    WORKSPACE = /^(\[workspace\.package\]\n(?:[^\[\n].*\n|\n)*?version = )"(.*)"$/
    # Pages that users read, where they name the gem's file.
    PAGES = ["README.md", "docs/**/*.md"].freeze

    module_function

    # The version that the files say.
    def version(root)
      said = { "lib/rperf/version.rb" => VERSION, "Cargo.toml" => WORKSPACE }.map do |path, pattern|
        File.read(File.join(root, path))[pattern, 2] || raise(Refusal, "#{path} says no version")
      end
      return said.first if said.uniq.one?

      raise Refusal, "lib/rperf/version.rb and Cargo.toml say different versions: #{said.join(" and ")}"
    end

    def set(root, gem, version)
      old = version(root)
      change(root, "lib/rperf/version.rb") { |text| text.sub(VERSION, "\\1\"#{version}\"") }
      change(root, "Cargo.toml") { |text| text.sub(WORKSPACE, "\\1\"#{version}\"") }
      Dir.glob(PAGES, base: root).each do |path|
        change(root, path) { |text| text.gsub("#{gem}-#{old}", "#{gem}-#{version}") }
      end
    end

    def change(root, path)
      path = File.join(root, path)
      text = File.read(path)
      changed = yield(text)
      File.write(path, changed) unless changed == text
    end

    # The gem's file for a platform.
    def gem(name, version, platform) = "#{[name, version, *(platform unless platform == "ruby")].join("-")}.gem"
  end
end
