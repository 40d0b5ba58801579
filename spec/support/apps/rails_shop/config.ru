# frozen_string_literal: true

require_relative "shop"

Thread.new { loop { sleep(2) && ExportJob.perform_now } }
run Rails.application
