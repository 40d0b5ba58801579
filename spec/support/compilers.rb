# frozen_string_literal: true

# The compilers of the Ruby under test, each with the option that turns it on.
# YJIT and ZJIT (as of Ruby 4.0) are there if Ruby was built with them.
module Compilers
  FLAGS = { "YJIT" => "--yjit", "ZJIT" => "--zjit" }.select { |name,| RubyVM.const_defined?(name) }.freeze
end
