# frozen_string_literal: true

# bin/support/checkers.sh, whose checkers first have to find a fault that is planted.
RSpec.describe "a checker that is to find a planted fault" do
  # What `finds_planted` says of a tool with this code, which gets the fault's number, and whether it is content.
  def found?(tool)
    script = <<~SH
      set -uo pipefail
      ROOT=#{directory.shellescape}
      . #{File.join(Commands::ROOT, "bin/support/checkers.sh").shellescape}
      tool() { #{tool}; }
      finds_planted 1 'Invalid read of size [0-9]' tool
    SH
    outcome = run("bash", "-c", script)
    [outcome.status.success?, outcome.stdout.lines.last.to_s.chomp]
  end

  report = "echo 'Invalid read of size 1'"

  it "has found it if it fails with it and reports it" do
    expect(found?("[ \"$1\" = 0 ] || { #{report}; return 99; }")).to eq([true, "finds fault 1 of planted.rs"])
  end

  it "hasn't if it fails for another reason" do
    said = "it fails with fault 1 of planted.rs, and reports no 'Invalid read of size [0-9]'"
    expect(found?('[ "$1" = 0 ] || { echo "Killed"; return 137; }')).to eq([false, said])
  end

  it "hasn't if it only reports it" do
    expect(found?("[ \"$1\" = 0 ] || #{report}")).to eq([false, "it doesn't find fault 1 of planted.rs"])
  end

  it "hasn't if it fails without it, too" do
    expect(found?("#{report}; return 99")).to eq([false, "it fails without a fault"])
  end
end
