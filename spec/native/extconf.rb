# frozen_string_literal: true

require "mkmf"

# faults.c is a library of its own: spec/support/faults.rb
$srcs = ["spec_native.c"] # rubocop:disable Style/GlobalVars
create_makefile("spec_native")
