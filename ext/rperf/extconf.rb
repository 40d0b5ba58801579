# frozen_string_literal: true

require "mkmf"
require "rb_sys/mkmf"

# RubyGems shows this with --verbose; without, it says of its own that this takes a while.
puts "rperf: building the extension, which is written in Rust: this takes one to five minutes"

create_rust_makefile("rperf/rperf") do |config|
  # A profiler that is built without optimisation measures itself.
  config.profile = ENV.fetch("RB_SYS_CARGO_PROFILE", "release").to_sym
  # Rust would have musl inside the library, and refuses to make such a one.
  config.extra_rustflags << "-C target-feature=-crt-static" if RUBY_PLATFORM.include?("musl")
  # Only a checkout has what specs and benchmarks ask for.
  config.features = ENV.fetch("RB_SYS_CARGO_FEATURES", "").split(",")
end

# The command is an executable beside the extension. What was built is removed only when both are
# installed: RubyGems lets make do several things at once.
File.write("Makefile", <<~MAKE, mode: "a")

  COMMAND = $(RUSTLIBDIR)/rperf-command

  $(COMMAND): $(RUSTLIB) FORCE
  \t$(ECHO) generating $(@) \\("$(RB_SYS_CARGO_PROFILE)"\\)
  \t$(CARGO) build $(RB_SYS_EXTRA_CARGO_ARGS) --manifest-path $(RB_SYS_CARGO_MANIFEST_DIR)/Cargo.toml \\
  \t  --package rperf-command \\
  \t  $(RB_SYS_CARGO_PROFILE_FLAG) $(if $(CARGO_BUILD_TARGET),--target $(CARGO_BUILD_TARGET)) \\
  \t  --target-dir $(RB_SYS_CARGO_TARGET_DIR)

  install-command: $(COMMAND)
  \t$(ECHO) installing $(COMMAND) to $(RUBYARCHDIR)/bin
  \t$(Q) $(MAKEDIRS) $(RUBYARCHDIR)/bin
  \t$(INSTALL_PROG) $(COMMAND) $(RUBYARCHDIR)/bin

  install-so: install-command

  gemclean: install-so

  all: $(COMMAND)
MAKE
