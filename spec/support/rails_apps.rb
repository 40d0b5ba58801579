# frozen_string_literal: true

require "fileutils"

# A Rails app in the example's directory, of one's own files and these. Goes with Commands.
module RailsApps
  FILES = {
    "config/environment.rb" => <<~RUBY,
      require "logger"
      require "rails"
      require_relative "gems"
      # Not its railtie, which loads Action View's helpers, and with them Nokogiri.
      require "action_controller"

      class Site < Rails::Application
        config.load_defaults 7.2
        config.root = File.dirname(__dir__)
        config.eager_load = false
        config.logger = Logger.new(nil)
        config.secret_key_base = "of the specs"
      end
      Rails.application.initialize!
    RUBY
    # Those besides Rails.
    "config/gems.rb" => "",
    "app/controllers/application_controller.rb" => File.read(File.join(__dir__, "apps/application_controller.rb")),
    "config.ru" => <<~RUBY
      require_relative "config/environment"
      run Rails.application
    RUBY
  }.freeze

  # @param files [Hash{String => String}] what they hold, by path
  def write_rails_app(files)
    FileUtils.mkdir_p(path_to("tmp"))
    FILES.merge(files).each do |path, content|
      FileUtils.mkdir_p(File.dirname(path_to(path)))
      write_file(path, content)
    end
  end
end
