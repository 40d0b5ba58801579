# frozen_string_literal: true

# Questions to a profile's Hash about its labels.
module Labelled
  # The values of a label under which samples have a frame of this name; nil stands for samples without it.
  def labels_of(data, key, method)
    samples = data[:samples].select { |frames,| frames.any? { |_path, name| name.include?(method) } }
    samples.map { |sample| label_of(data, key, sample) }.uniq
  end

  # Nanoseconds by the label's value.
  def time_by_label(data, key)
    data[:samples].each_with_object(Hash.new(0)) do |sample, sums|
      sums[label_of(data, key, sample)] += sample[1]
    end
  end

  # Each of the methods has samples, and all of them have its own label only: `own` is { method => label }.
  def expect_own_labels(data, key, own)
    expect(own.keys.to_h { |method| [method, labels_of(data, key, method)] }).to eq(own.transform_values { |it| [it] })
  end

  # What the app measured, in seconds by label, is what its samples say. `slack`, in seconds too, is for short runs: the
  # running time between two ticks goes to one of the labels that it was under, and on a busy machine ticks come late.
  def expect_measured_times(data, key, measured, tolerance: 0.05, slack: 0.15)
    sampled = time_by_label(data, key).transform_values { |ns| ns / 1e9 }
    measured.each do |label, time|
      expect([label, sampled[label]]).to match([label, be_within((time * tolerance) + slack).of(time)])
    end
  end

  private

  def label_of(data, key, sample) = data.fetch(:label_sets, [{}])[sample[3]][key]
end
