# frozen_string_literal: true

# Questions to a profile's Hash about its labels.
module Labelled
  # The values of a label under which samples have a frame of this name; nil stands for samples without it.
  def labels_of(data, key, method)
    samples_in(data, method).map { |sample| label_of(data, key, sample) }.uniq
  end

  # The label sets without why a collection ran: a collection may run in any program.
  def own_label_sets(data) = data.fetch(:label_sets, []).map { |set| set.except(:"%gc") }.uniq

  # Nanoseconds by the label's value.
  def time_by_label(data, key)
    data[:samples].each_with_object(Hash.new(0)) do |sample, sums|
      sums[label_of(data, key, sample)] += sample[1]
    end
  end

  # The label is where it belongs: each of the methods has samples, and all of them have its own label only (`own` is
  # { method => label }). And it is nowhere else, if it is said which frame puts it on.
  def expect_own_labels(data, key, own, from: nil)
    expect(own.keys.to_h { |method| [method, labels_of(data, key, method)] }).to eq(own.transform_values { |it| [it] })
    expect_labels_from(data, key, from) if from
  end

  # Whatever has a label has been called by this frame.
  def expect_labels_from(data, key, from)
    elsewhere = data[:samples].reject { |sample| sample[2] == 0 } - samples_in(data, from)
    expect(elsewhere.select { |sample| label_of(data, key, sample) }).to eq([])
  end

  # A good part of what the app measured, in seconds by label, is in the samples. How much, in a short run, is a matter
  # of chance and of other programs: the running time between two ticks goes to one of the labels that it was under.
  def expect_times_of_some_length(data, key, measured)
    sampled = time_by_label(data, key).transform_values { |ns| ns / 1e9 }
    measured.each { |label, time| expect([label, sampled.fetch(label, 0)]).to match([label, be > time / 3]) }
  end

  # What the app measured is what the samples say. For long runs: two seconds in short pieces have a standard deviation
  # of some 2 %, and more on a busy machine.
  def expect_measured_times(data, key, measured, tolerance: 0.15, slack: 0.02)
    sampled = time_by_label(data, key).transform_values { |ns| ns / 1e9 }
    measured.each do |label, time|
      expect([label, sampled[label]]).to match([label, be_within((time * tolerance) + slack).of(time)])
    end
  end

  # In a deferred session each thread's time counts while a request or a job is on its way, and no more: that is at most
  # what they took one after the other.
  def expect_sections_only(data, measured)
    all = measured.values.sum
    by_thread = data[:samples].each_with_object(Hash.new(0)) { |sample, sums| sums[sample[2]] += sample[1] }
    expect(by_thread.values.max / 1e9).to be < (all * 1.05) + 0.1
  end

  # The profile with samples of this label only.
  def part_of(data, key, label)
    data.merge(samples: data[:samples].select { |sample| label_of(data, key, sample) == label })
  end

  private

  # Thread 0 stands for those that ended before any stack was taken: their time has a stack of somebody else's.
  def samples_in(data, method)
    data[:samples].select do |frames, _, thread|
      thread != 0 && frames.any? { |_path, name| name.include?(method) }
    end
  end

  def label_of(data, key, sample) = data.fetch(:label_sets, [{}])[sample[3]][key]
end
