# frozen_string_literal: true

namespace :viewer do
  # As the lock file says, with no scripts of packages.
  file "viewer/node_modules" => "viewer/package-lock.json" do
    sh "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", chdir: "viewer"
  end

  desc "Builds the viewer's page into lib/rperf/viewer (needs Node 20)"
  task build: "viewer/node_modules" do
    sh "npm", "run", "--silent", "build", chdir: "viewer"
  end

  desc "Types, style and tests of the viewer's page, without a browser"
  task check: "viewer/node_modules" do
    sh "npm", "run", "--silent", "check", chdir: "viewer"
    sh "node", "build.mjs", "--check", chdir: "viewer"
  end
end
