"""The attach/detach controller of a cluster: which volumes have to be attached to which nodes, and seeing to it (ADC).

Two controllers share what is here. :mod:`pods` knows which pod wants which volume on which node; its keys are pods.
:mod:`pairs` attaches and detaches; its keys are pairs of volume and node. What is wanted and what is there is kept in
memory and rebuilt at each start from pods, node status and VolumeAttachments.
"""
