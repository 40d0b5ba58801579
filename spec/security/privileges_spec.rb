# frozen_string_literal: true

require "fileutils"

# Whoever starts such a program has set its environment, and may have fewer rights.
RSpec.describe "A program that its file makes run as another user", if: OtherUser::USER do
  include OtherUser

  # A Ruby that its caller runs as root.
  def root_ruby(directory)
    File.join(directory, "ruby").tap do |path|
      FileUtils.cp(ruby, path)
      File.chmod(0o4755, path)
    end
  end

  it "writes nothing where the environment says" do
    others_public_directory do |directory|
      script = File.join(directory, "program.rb")
      File.write(script, "require '#{File.join(Commands::ROOT, "lib/rperf")}'; puts Process.euid")
      output = path_to("of_root")
      env = { "RPERF_ENABLED" => "1", "RPERF_OUTPUT" => output }
      outcome = run("setpriv", "--reuid", OtherUser::USER.to_s, "--clear-groups", root_ruby(directory), script, env:)
      expect(outcome).to have_attributes(status: be_success, stdout: "0\n")
      expect(outcome.stderr.lines).to contain_exactly(/\Arperf: the program's file makes it run as another user/)
      expect(File.exist?(output)).to be(false)
    end
  end
end
