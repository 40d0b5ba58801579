# frozen_string_literal: true

# A program that others have written: rdoc makes the pages of a part of Ruby's standard library. Many classes, much
# work in C, deep and broad call trees.

require "fileutils"
require "rdoc"
require "tmpdir"

# At scale 1 it is the net library's source; the smaller size has one file.
WORKLOAD = lambda do |scale|
  source = File.join(RbConfig::CONFIG["rubylibdir"], scale >= 0.5 ? "net" : "net/protocol.rb")
  # It warns of links in the pages that lead nowhere, on both.
  output = [$stdout, $stderr]
  $stdout = $stderr = File.open(File::NULL, "w")
  Dir.mktmpdir("rperf bench") do |directory|
    RDoc::RDoc.new.document(["--quiet", "--force-update", "--output", File.join(directory, "pages"), source])
  end
ensure
  $stdout, $stderr = output
end
