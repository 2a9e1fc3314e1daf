"""From pods to wanted volumes: claims followed, plugins asked, names made."""
