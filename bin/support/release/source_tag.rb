# frozen_string_literal: true

# source_tag.rb NAME: prints NAME=TAG, TAG being that of this Ruby's own source in its repository.

tag = RUBY_VERSION.to_i < 4 ? "v#{RUBY_VERSION.tr(".", "_")}" : "v#{RUBY_VERSION}"
puts "#{ARGV.fetch(0)}=#{tag}"
