# frozen_string_literal: true

require "digest"
require "rubygems"

# The page in the gem is built from viewer/, by Node. This spec needs no Node: it compares digests.
RSpec.describe "The viewer's page" do
  let(:root) { Commands::ROOT }
  let(:asset) { File.join(root, "lib", "rperf", "viewer") }
  let(:page) { File.binread(File.join(asset, "viewer.html")) }
  let(:lock) do
    lines = File.readlines(File.join(asset, "viewer.lock"), chomp: true).grep_v(/\A#/)
    lines.to_h { |line| line.split(" ", 2) }
  end

  def source_digest(root)
    viewer = File.join(root, "viewer")
    files = Dir.glob("src/**/*", base: viewer).select { |file| File.file?(File.join(viewer, file)) }
    files += %w[build.mjs package.json package-lock.json tsconfig.json]
    lines = files.sort.map { |file| "#{Digest::SHA256.file(File.join(viewer, file)).hexdigest}  #{file}\n" }
    Digest::SHA256.hexdigest(lines.join)
  end

  it "is built from the sources that are here (if not: npm run build in viewer/)" do
    expect(lock.fetch("sources")).to eq(source_digest(root))
    expect(lock.fetch("viewer.html")).to eq(Digest::SHA256.hexdigest(page))
  end

  it "has one place for the profile" do
    expect(page.scan("@RPERF_DATA@").size).to eq(1)
    expect(page).to include('<script type="application/x-rperf" id="profile">@RPERF_DATA@</script>')
  end

  it "allows its own script and style only, by hash" do
    policy = page[/Content-Security-Policy" content="([^"]*)"/, 1]
    expect(lock.fetch("csp")).to eq("#{policy}; frame-ancestors 'none'")
    script = page[%r{<script>(.*?)</script>}m, 1]
    style = page[%r{<style>(.*?)</style>}m, 1]
    hash = ->(text) { "'sha256-#{[Digest::SHA256.digest(text)].pack("m0")}'" }
    expect(policy).to include("default-src 'none'", "script-src #{hash.call(script)};",
                              "style-src #{hash.call(style)};")
  end

  it "is in the gem, and its sources are not" do
    spec = Dir.chdir(root) { Gem::Specification.load("rperf.gemspec") }
    expect(spec.files).to include("lib/rperf/viewer/viewer.html", "lib/rperf/viewer/viewer.lock")
    expect(spec.files.grep(%r{\Aviewer/})).to be_empty
  end

  it "holds no address of a network" do
    addresses = page.scan(%r{https?://[^\s"'`)]+}).uniq
    # XML's names for SVG and MathML, which Preact knows; nothing is fetched from them.
    expect(addresses.grep_v(%r{\Ahttps?://www\.w3\.org/})).to be_empty
  end
end
